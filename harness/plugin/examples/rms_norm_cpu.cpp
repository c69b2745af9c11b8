// SPDX-License-Identifier: Apache-2.0
// A worked example of a plug-in for a host build: rms_norm forward and backward, f32 and bf16.
// With kernels/call/tigon.h beside it, and a header that names what a call holds:
//   ./tigon describe rms_norm --call > rms_norm_call.h
//   g++ -std=c++17 -O2 -shared -fPIC rms_norm_cpu.cpp -o libmine.so
//   ./tigon --device host check --impl-from ./libmine.so
//   ./tigon --device host bench --impl-from ./libmine.so
#include <cmath>
#include <cstring>

#include "rms_norm_call.h"

namespace {

// ---- elements -----------------------------------------------------------------------------------

struct Bf16 {
  uint16_t bits;
};

float load(float v) { return v; }
float load(Bf16 v) {
  const uint32_t bits = static_cast<uint32_t>(v.bits) << 16;
  float f;
  std::memcpy(&f, &bits, sizeof f);
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
  std::memcpy(&bits, &v, sizeof bits);
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
Matrix<T> matrix(const tigon_tensor& t) {
  if (t.data == nullptr) return {nullptr, 0, 0, 0};
  T* data = static_cast<T*>(t.data);
  const int64_t columns = t.sizes[t.rank - 1];
  if (t.rank == 1) return {data, 1, columns, columns};
  return {data, t.sizes[0], columns, t.strides != nullptr ? t.strides[0] : columns};
}

// ---- forward ------------------------------------------------------------------------------------

// y = x * rstd * (offset + w), rstd = 1 / sqrt(mean(x^2) + eps)

template <class T>
tigon_status forward(const tigon_op*, const tigon_call* call, void*) {
  const rms_norm_forward_args args = rms_norm_forward_args_of(call);
  const Matrix<T> x = matrix<T>(args.x), w = matrix<T>(args.w), y = matrix<T>(args.y);
  const Matrix<float> rstd = matrix<float>(args.rstd);
  const float offset = static_cast<float>(args.offset);
  const bool rounds_normal = args.casting != RMS_NORM_FORWARD_CASTING_GEMMA,
             rounds_all = args.casting == RMS_NORM_FORWARD_CASTING_NONE;
  for (int64_t t = 0; t < x.rows; ++t) {
    double sum = 0;
    for (int64_t h = 0; h < x.columns; ++h) sum += std::pow(load(x.row(t)[h]), 2.0);
    float r = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(x.columns) + args.eps));
    rstd.data[t] = r;
    if (rounds_all) r = load(rounded<T>(r));
    for (int64_t h = 0; h < x.columns; ++h) {
      float normal = load(x.row(t)[h]) * r;
      if (rounds_normal) normal = load(rounded<T>(normal));
      float gain = w ? offset + load(w.data[h]) : 1.0f;
      if (rounds_all) gain = load(rounded<T>(gain));
      y.row(t)[h] = rounded<T>(normal * gain);
    }
  }
  return {TIGON_OK, ""};
}

// ---- backward -----------------------------------------------------------------------------------

// dx = rstd * (m - x * rstd^2 * mean(m * x)), m = dy * (offset + w);  dw = sum_T dy * x * rstd

// Sums of dw in double.
size_t backward_workspace(const tigon_op*, const tigon_call* call) {
  const rms_norm_backward_args args = rms_norm_backward_args_of(call);
  return args.dw.data ? static_cast<size_t>(args.dw.sizes[0]) * sizeof(double) : 0;
}

template <class T>
tigon_status backward(const tigon_op*, const tigon_call* call, void*) {
  const rms_norm_backward_args args = rms_norm_backward_args_of(call);
  const Matrix<T> dy = matrix<T>(args.dy), x = matrix<T>(args.x), w = matrix<T>(args.w),
                  dx = matrix<T>(args.dx);
  const Matrix<float> rstd = matrix<float>(args.rstd), dw = matrix<float>(args.dw);
  const double offset = args.offset;
  double* sums = static_cast<double*>(call->scratch);
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
  return {TIGON_OK, ""};
}

// ---- the library --------------------------------------------------------------------------------

tigon_op op(const char* name, int32_t dtype) {
  tigon_op op = {};
  op.abi = TIGON_ABI;
  op.dtype = dtype;
  op.device = TIGON_DEVICE_HOST;
  op.name = name;
  op.implementation = "example";
  return op;
}

template <class T>
tigon_op forward_op(int32_t dtype) {
  tigon_op made = op("rms_norm.forward", dtype);
  made.run = forward<T>;
  return made;
}

template <class T>
tigon_op backward_op(int32_t dtype) {
  tigon_op made = op("rms_norm.backward", dtype);
  made.workspace = backward_workspace;
  made.run = backward<T>;
  return made;
}

const tigon_op kOps[] = {forward_op<float>(TIGON_F32), forward_op<Bf16>(TIGON_BF16),
                         backward_op<float>(TIGON_F32), backward_op<Bf16>(TIGON_BF16)};

}  // namespace

const tigon_op* tigon_find(const char* name, int32_t dtype) {
  for (const tigon_op& op : kOps)
    if (op.dtype == dtype && std::strcmp(op.name, name) == 0) return &op;
  return nullptr;
}
