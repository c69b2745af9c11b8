// What the cheats share: an honest rms_norm in f32 and the library around cheat_run, which each of
// them defines.
#pragma once
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "harness/plugin/tigon_plugin.h"

#ifdef __CUDACC__
#define CHEAT_HOST_DEVICE __host__ __device__
#else
#define CHEAT_HOST_DEVICE
#endif

// The cheat.
int32_t cheat_run(const tigon_call* call, const char** message);
// Only where preparing is part of it.
__attribute__((weak)) int32_t cheat_prepare(const tigon_call* call, const char** message);

namespace cheat {

// The tensors of rms_norm forward in f32.
struct Forward {
  const float *x, *w;
  float *y, *rstd;
  int64_t rows, columns, x_stride, y_stride;
  double eps, offset;

  explicit Forward(const tigon_call* call) {
    const tigon_tensor *tx = tigon_find(call, "x"), *ty = tigon_find(call, "y");
    x = static_cast<const float*>(tx->data);
    w = static_cast<const float*>(tigon_find(call, "w")->data);
    y = static_cast<float*>(ty->data);
    rstd = static_cast<float*>(tigon_find(call, "rstd")->data);
    rows = tx->shape[0];
    columns = tx->shape[1];
    x_stride = tx->stride[0];
    y_stride = ty->stride[0];
    eps = tigon_number(call, "eps", 1e-6);
    offset = tigon_number(call, "offset", 0);
  }
  CHEAT_HOST_DEVICE double gain(int64_t h) const { return w ? offset + w[h] : 1; }
};

inline void honest_row(const Forward& f, int64_t t) {
  double sum = 0;
  for (int64_t h = 0; h < f.columns; ++h) sum += std::pow(f.x[t * f.x_stride + h], 2.0);
  const double r = 1 / std::sqrt(sum / static_cast<double>(f.columns) + f.eps);
  f.rstd[t] = static_cast<float>(r);
  for (int64_t h = 0; h < f.columns; ++h)
    f.y[t * f.y_stride + h] = static_cast<float>(f.x[t * f.x_stride + h] * r * f.gain(h));
}

inline void honest(const Forward& f) {
  for (int64_t t = 0; t < f.rows; ++t) honest_row(f, t);
}

// The outputs of a call, to be given again.
struct Answer {
  std::vector<float> y, rstd;

  void take(const Forward& f) {
    y.resize(static_cast<size_t>(f.rows * f.columns));
    rstd.assign(f.rstd, f.rstd + f.rows);
    for (int64_t t = 0; t < f.rows; ++t)
      std::memcpy(y.data() + t * f.columns, f.y + t * f.y_stride,
                  static_cast<size_t>(f.columns) * sizeof(float));
  }
  void give(const Forward& f) const {
    for (int64_t t = 0; t < f.rows && t < static_cast<int64_t>(rstd.size()); ++t) {
      f.rstd[t] = rstd[static_cast<size_t>(t)];
      for (int64_t h = 0; h < f.columns; ++h)
        f.y[t * f.y_stride + h] = y[static_cast<size_t>(t * f.columns + h) % y.size()];
    }
  }
};

// What an honest kernel would cost at least, for cheats on the clock: 3 ms of work.
inline constexpr double kHonestSeconds = 3e-3;
inline void work_hard() {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
         kHonestSeconds) {
  }
}

inline int32_t run(const tigon_call* call, const char** message) {
  return cheat_run(call, message);
}

#ifdef __CUDACC__
inline constexpr int32_t kDevice = TIGON_DEVICE_CUDA;
#else
inline constexpr int32_t kDevice = TIGON_DEVICE_HOST;
#endif
inline constexpr int32_t kTypes[] = {TIGON_F32};
inline const tigon_kernel kKernel = {
    sizeof(tigon_kernel), "rms_norm", "forward", "cheat", kDevice, 1, kTypes, nullptr,
    cheat_prepare,        run};
inline const tigon_kernel* const kKernels[] = {&kKernel};
inline const tigon_plugin kPlugin = {
    sizeof(tigon_plugin), TIGON_PLUGIN_ABI, 1, "cheat", "1", kKernels};

}  // namespace cheat

// A library has one source, which includes this.
// NOLINTNEXTLINE(misc-definitions-in-headers)
const tigon_plugin* tigon_plugin_get(uint32_t) { return &cheat::kPlugin; }
