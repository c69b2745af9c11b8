// SPDX-License-Identifier: Apache-2.0
// What the cheats share: an honest rms_norm in f32 and the library around cheat_run, which each of
// them defines.
#pragma once
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/call/tigon.h"

#ifdef __CUDACC__
#define CHEAT_HOST_DEVICE __host__ __device__
using CheatStream = cudaStream_t;
#else
#define CHEAT_HOST_DEVICE
using CheatStream = void*;
#endif

// The cheat.
tigon_status cheat_run(const tigon_call* call, CheatStream stream);
// Only where preparing is part of it.
__attribute__((weak)) tigon_status cheat_prepare(const tigon_call* call);

namespace cheat {

inline constexpr tigon_status kOk = {TIGON_OK, ""};

// The tensors of rms_norm forward in f32.
struct Forward {
  const float *x, *w;
  float *y, *rstd;
  int64_t rows, columns, x_stride, y_stride;
  double eps = 1e-6, offset = 0;

  explicit Forward(const tigon_call* call) {
    const tigon_tensor *t = call->tensors, *tx = &t[0], *ty = &t[2];
    x = static_cast<const float*>(tx->data);
    w = static_cast<const float*>(t[1].data);
    y = static_cast<float*>(ty->data);
    rstd = static_cast<float*>(t[3].data);
    rows = tx->sizes[0];
    columns = tx->sizes[1];
    x_stride = tx->strides[0];
    y_stride = ty->strides[0];
    for (int i = 0; i < call->option_count; ++i) {
      if (call->options[i].index == 0) eps = call->options[i].value;
      if (call->options[i].index == 1) offset = call->options[i].value;
    }
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

inline tigon_status prepare(const tigon_op*, const tigon_call* call) {
  return cheat_prepare != nullptr ? cheat_prepare(call) : kOk;
}
inline tigon_status run(const tigon_op*, const tigon_call* call, void* stream) {
  return cheat_run(call, static_cast<CheatStream>(stream));
}

inline tigon_op make_op() {
  tigon_op op = {};
  op.abi = TIGON_ABI;
  op.dtype = TIGON_F32;
#ifdef __CUDACC__
  op.device = TIGON_DEVICE_CUDA;
#else
  op.device = TIGON_DEVICE_HOST;
#endif
  op.name = "rms_norm.forward";
  op.implementation = "cheat";
  op.prepare = prepare;
  op.run = run;
  return op;
}

}  // namespace cheat

// A library has one source, which includes this.
// NOLINTNEXTLINE(misc-definitions-in-headers)
const tigon_op* tigon_find(const char* name, int32_t dtype) {
  static const tigon_op op = cheat::make_op();
  return dtype == op.dtype && std::strcmp(name, op.name) == 0 ? &op : nullptr;
}
