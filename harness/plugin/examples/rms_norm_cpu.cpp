// A worked example of a plug-in for a host build: rms_norm forward and backward, f32 and bf16.
// With tigon_plugin.h beside it:
//   g++ -std=c++17 -O2 -shared -fPIC rms_norm_cpu.cpp -o libmine.so
//   ./tigon --device host check --impl-from ./libmine.so
//   ./tigon --device host bench --impl-from ./libmine.so
#include <cmath>
#include <vector>

#include "tigon_plugin.h"

namespace {

// ---- elements -----------------------------------------------------------------------------------

struct Bf16 {
  uint16_t bits;
};

float load(float v) { return v; }
float load(Bf16 v) {
  const uint32_t bits = static_cast<uint32_t>(v.bits) << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

template <class T>
T rounded(float v);
template <>
float rounded<float>(float v) {
  return v;
}
template <>
Bf16 rounded<Bf16>(float v) {  // to nearest, ties to even
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  if (std::isnan(v)) return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

// ---- tensors ------------------------------------------------------------------------------------

// A matrix whose rows may lie apart. A vector is one row of it.
template <class T>
struct Matrix {
  T* data;
  int64_t rows, columns, stride;
  T* row(int64_t i) const { return data + i * stride; }
  explicit operator bool() const { return data != nullptr; }
};

template <class T>
Matrix<T> matrix(const tigon_call* call, const char* name) {
  const tigon_tensor* t = tigon_find(call, name);
  if (t == nullptr || t->data == nullptr) return {nullptr, 0, 0, 0};
  T* data = static_cast<T*>(t->data);
  if (t->rank == 1) return {data, 1, t->shape[0], t->shape[0]};
  return {data, t->shape[0], t->shape[1], t->stride[0]};
}

// ---- forward ------------------------------------------------------------------------------------

// y = x * rstd * (offset + w), rstd = 1 / sqrt(mean(x^2) + eps)

template <class T>
void forward(const tigon_call* call) {
  const Matrix<T> x = matrix<T>(call, "x"), w = matrix<T>(call, "w"), y = matrix<T>(call, "y");
  const Matrix<float> rstd = matrix<float>(call, "rstd");
  const double eps = tigon_number(call, "eps", 1e-6);
  const float offset = static_cast<float>(tigon_number(call, "offset", 0));
  const bool rounds_twice = tigon_chosen(call, "casting", "llama");
  for (int64_t t = 0; t < x.rows; ++t) {
    double sum = 0;
    for (int64_t h = 0; h < x.columns; ++h) sum += std::pow(load(x.row(t)[h]), 2.0);
    const double r = 1 / std::sqrt(sum / static_cast<double>(x.columns) + eps);
    rstd.data[t] = static_cast<float>(r);
    for (int64_t h = 0; h < x.columns; ++h) {
      float normal = static_cast<float>(load(x.row(t)[h]) * r);
      if (rounds_twice) normal = load(rounded<T>(normal));
      const float gain = w ? offset + load(w.data[h]) : 1.0f;
      y.row(t)[h] = rounded<T>(normal * gain);
    }
  }
}

// ---- backward -----------------------------------------------------------------------------------

// dx = rstd * (m - x * rstd^2 * mean(m * x)), m = dy * (offset + w);  dw = sum_T dy * x * rstd

// Partial sums of dw in double.
template <class T>
size_t backward_workspace(const tigon_call* call) {
  return matrix<T>(call, "dw") ? static_cast<size_t>(matrix<T>(call, "x").columns) * sizeof(double)
                               : 0;
}

template <class T>
void backward(const tigon_call* call) {
  const Matrix<T> dy = matrix<T>(call, "dy"), x = matrix<T>(call, "x"), w = matrix<T>(call, "w"),
                  dx = matrix<T>(call, "dx");
  const Matrix<float> rstd = matrix<float>(call, "rstd"), dw = matrix<float>(call, "dw");
  const double offset = tigon_number(call, "offset", 0);
  double* sums = static_cast<double*>(call->workspace);
  if (dw)
    for (int64_t h = 0; h < x.columns; ++h) sums[h] = 0;
  for (int64_t t = 0; t < x.rows; ++t) {
    const double r = rstd.data[t];
    const auto m = [&](int64_t h) {
      return load(dy.row(t)[h]) * (w ? offset + load(w.data[h]) : 1.0);
    };
    double mean = 0;
    for (int64_t h = 0; h < x.columns; ++h) mean += m(h) * load(x.row(t)[h]);
    mean /= static_cast<double>(x.columns);
    for (int64_t h = 0; h < x.columns; ++h) {
      const double v = load(x.row(t)[h]);
      if (dw) sums[h] += load(dy.row(t)[h]) * v * r;  // before dx, which may be dy's memory
      dx.row(t)[h] = rounded<T>(static_cast<float>(r * (m(h) - v * r * r * mean)));
    }
  }
  if (dw)
    for (int64_t h = 0; h < x.columns; ++h) dw.data[h] = static_cast<float>(sums[h]);
}

// ---- the library --------------------------------------------------------------------------------

int32_t run_forward(const tigon_call* call, const char**) {
  call->dtype == TIGON_F32 ? forward<float>(call) : forward<Bf16>(call);
  return TIGON_OK;
}
int32_t run_backward(const tigon_call* call, const char**) {
  call->dtype == TIGON_F32 ? backward<float>(call) : backward<Bf16>(call);
  return TIGON_OK;
}
size_t workspace(const tigon_call* call) {
  return call->dtype == TIGON_F32 ? backward_workspace<float>(call)
                                  : backward_workspace<Bf16>(call);
}

const int32_t kTypes[] = {TIGON_F32, TIGON_BF16};
const tigon_kernel kForward = {sizeof(tigon_kernel),
                               "rms_norm",
                               "forward",
                               "example",
                               TIGON_DEVICE_HOST,
                               2,
                               kTypes,
                               nullptr,
                               nullptr,
                               run_forward};
const tigon_kernel kBackward = {sizeof(tigon_kernel),
                                "rms_norm",
                                "backward",
                                "example",
                                TIGON_DEVICE_HOST,
                                2,
                                kTypes,
                                workspace,
                                nullptr,
                                run_backward};
const tigon_kernel* const kKernels[] = {&kForward, &kBackward};
const tigon_plugin kPlugin = {
    sizeof(tigon_plugin), TIGON_PLUGIN_ABI, 2, "rms_norm_cpu", "1.0", kKernels};

}  // namespace

const tigon_plugin* tigon_plugin_get(uint32_t abi) {
  return abi == TIGON_PLUGIN_ABI ? &kPlugin : nullptr;
}
