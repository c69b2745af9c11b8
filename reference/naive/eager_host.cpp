// SPDX-License-Identifier: Apache-2.0
// The primitives on a CPU: row by row, in fp32 Eigen arrays.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/device/gemm.h"
#include "kernels/device/runtime.h"
#include "reference/naive/eager.h"

namespace tigon::naive {
namespace {

using Array = Eigen::ArrayXf;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <class F>
void with_type(DType type, F&& f) {
  switch (type) {
    case DType::kF32:
      return f(float{});
    case DType::kBF16:
      return f(bf16{});
    case DType::kF16:
      return f(f16{});
    default:
      fail(Status::kUnsupported, std::string("naive: tensors of ") + name_of(type));
  }
}

// Row (i, j) of a tensor; a dimension of size 1 is repeated.
void* row_of(const Tensor& t, int64_t i, int64_t j) {
  const int64_t offset =
      (t.shape[0] == 1 ? 0 : i * t.stride[0]) + (t.shape[1] == 1 ? 0 : j * t.stride[1]);
  return static_cast<std::byte*>(t.data) + static_cast<size_t>(offset) * size_of(t.type);
}

void read(const Tensor& t, int64_t i, int64_t j, Array& to) {
  with_type(t.type, [&]<class T>(T) {
    const T* from = static_cast<const T*>(row_of(t, i, j));
    if (t.shape[2] == 1)
      to.setConstant(static_cast<float>(from[0]));
    else
      for (int64_t k = 0; k < to.size(); ++k) to[k] = static_cast<float>(from[k]);
  });
}

void write(const Array& from, const Tensor& t, int64_t i, int64_t j) {
  with_type(t.type, [&]<class T>(T) {
    T* to = static_cast<T*>(row_of(t, i, j));
    for (int64_t k = 0; k < from.size(); ++k) to[k] = T(from[k]);
  });
}

template <class F>
void for_each_row(const Tensor& t, F&& f) {
  for (int64_t i = 0; i < t.shape[0]; ++i)
    for (int64_t j = 0; j < t.shape[1]; ++j) f(i, j);
}

auto sigmoid(const Array& x) { return 1.0f / (1.0f + (-x).exp()); }

void apply(Unary op, Array& x) {
  switch (op) {
    case Unary::kCopy:
      return;
    case Unary::kNegate:
      x = -x;
      return;
    case Unary::kRsqrt:
      x = 1.0f / x.sqrt();  // Eigen's rsqrt may be an estimate
      return;
    case Unary::kExp:
      x = x.exp();
      return;
    case Unary::kLog:
      x = x.log();
      return;
    case Unary::kTanh:
      x = x.tanh();
      return;
    case Unary::kSilu:
      x = x / (1.0f + (-x).exp());
      return;
  }
}

// a = op(a, b)
void apply(Binary op, Array& a, const Array& b) {
  switch (op) {
    case Binary::kAdd:
      a += b;
      return;
    case Binary::kSub:
      a -= b;
      return;
    case Binary::kMul:
      a *= b;
      return;
    case Binary::kDiv:
      a /= b;
      return;
    case Binary::kMax:
      a = a.max(b);
      return;
    case Binary::kSiluBackward:
      a = b * sigmoid(a) * (1.0f + a * (1.0f - sigmoid(a)));
      return;
    case Binary::kTanhBackward:
      a = b / a.cosh().square();
      return;
  }
}

const float* floats(const Tensor& t, int64_t row) {
  return static_cast<const float*>(row_of(t, 0, row));
}
float* floats_out(const Tensor& t, int64_t row) { return static_cast<float*>(row_of(t, 0, row)); }

bool valid(int64_t target, const Tensor& x) { return target >= 0 && target < x.shape[2]; }

}  // namespace

double tanh_error() { return 0; }

void Eager::unary(Unary op, const Tensor& x, const Tensor& y) const {
  Array row(y.shape[2]);
  for_each_row(y, [&](int64_t i, int64_t j) {
    read(x, i, j, row);
    apply(op, row);
    write(row, y, i, j);
  });
}

void Eager::binary(Binary op, const Tensor& a, const Tensor& b, const Tensor& y) const {
  Array left(y.shape[2]), right(y.shape[2]);
  for_each_row(y, [&](int64_t i, int64_t j) {
    read(a, i, j, left);
    read(b, i, j, right);
    apply(op, left, right);
    write(left, y, i, j);
  });
}

void Eager::binary(Binary op, const Tensor& a, float b, const Tensor& y) const {
  binary(op, a, as_tensor(&b, {1, 1, 1}, {1, 1, 1}), y);
}

void Eager::sum(const Tensor& x, Over over, float scale, const Tensor& y) const {
  Array row(x.shape[2]), total = Array::Zero(x.shape[2]);
  for (int64_t t = 0; t < x.shape[1]; ++t) {
    read(x, 0, t, row);
    if (over == Over::kFeatures)
      *floats_out(y, t) = scale * row.sum();
    else
      total += row;
  }
  if (over == Over::kTokens) write(scale * total, y, 0, 0);
}

Tensor Eager::log_softmax(const Tensor& x) const {
  const Tensor y = empty(DType::kF32, x.shape);
  Array row(x.shape[2]);
  for (int64_t t = 0; t < x.shape[1]; ++t) {
    read(x, 0, t, row);
    row -= row.maxCoeff<Eigen::PropagateNaN>();
    row -= std::log(row.exp().sum());
    write(row, y, 0, t);
  }
  return y;
}

void Eager::log_softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) const {
  Array row(y.shape[2]), gradient(y.shape[2]);
  for (int64_t t = 0; t < y.shape[1]; ++t) {
    read(y, 0, t, row);
    read(dy, 0, t, gradient);
    gradient -= row.exp() * gradient.sum();
    write(gradient, dx, 0, t);
  }
}

void Eager::softmax(const Tensor& x, const Tensor& y) const {
  Array row(x.shape[2]);
  for (int64_t t = 0; t < x.shape[1]; ++t) {
    read(x, 0, t, row);
    row = (row - row.maxCoeff<Eigen::PropagateNaN>()).exp();
    row /= row.sum();
    write(row, y, 0, t);
  }
}

void Eager::softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) const {
  Array row(y.shape[2]), gradient(y.shape[2]);
  for (int64_t t = 0; t < y.shape[1]; ++t) {
    read(y, 0, t, row);
    read(dy, 0, t, gradient);
    const float sum = (row * gradient).sum();
    gradient = row * (gradient - sum);
    write(gradient, dx, 0, t);
  }
}

void Eager::multiply(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                     const Tensor& c) const {
  Gemm g;
  g.m = c.shape[1];
  g.n = c.shape[2];
  g.k = transpose_a ? a.shape[1] : a.shape[2];
  g.in_type = a.type;
  g.out_type = c.type;
  g.a = a.data;
  g.b = b.data;
  g.c = c.data;
  g.lda = a.stride[1];
  g.ldb = b.stride[1];
  g.ldc = c.stride[1];
  g.transpose_a = transpose_a;
  g.transpose_b = transpose_b;
  const DeviceBuffer scratch(gemm_workspace(g));
  const Status status = gemm(g, {scratch.data(), scratch.bytes()}, stream_);
  if (!status.ok()) fail(status.code, status.reason);
}

Tensor Eager::not_ignored(const Targets& target, int64_t ignore_index) const {
  const Tensor y = empty(DType::kF32, {1, target.shape[0], 1});
  for (int64_t t = 0; t < target.shape[0]; ++t)
    *floats_out(y, t) = target.data[t] == ignore_index ? 0.0f : 1.0f;
  return y;
}

Tensor Eager::gather(const Tensor& x, const Targets& target) const {
  const Tensor y = empty(DType::kF32, {1, x.shape[1], 1});
  for (int64_t t = 0; t < x.shape[1]; ++t)
    *floats_out(y, t) = valid(target.data[t], x) ? floats(x, t)[target.data[t]] : kNaN;
  return y;
}

void Eager::take_rows(const Tensor& x, const int64_t* row, const Tensor& y) const {
  for (int64_t t = 0; t < y.shape[1]; ++t)
    if (row[t] >= 0 && row[t] < x.shape[1])
      std::copy_n(floats(x, row[t]), y.shape[2], floats_out(y, t));
    else
      std::fill_n(floats_out(y, t), y.shape[2], kNaN);
}

void Eager::scatter(const Tensor& y, const Targets& target, const Tensor& value) const {
  for (int64_t t = 0; t < y.shape[1]; ++t) {
    const bool good = valid(target.data[t], y);
    floats_out(y, t)[good ? target.data[t] : 0] = good ? *floats(value, t) : kNaN;
  }
}

void Eager::log_sum_exp(const Tensor& x, const Tensor& log_softmax, const Tensor& lse) const {
  Array row(x.shape[2]);
  for (int64_t t = 0; t < x.shape[1]; ++t) {
    read(x, 0, t, row);
    Eigen::Index j = 0;
    while (j < row.size() && !std::isfinite(row[j])) ++j;
    *floats_out(lse, t) = j < row.size() ? row[j] - floats(log_softmax, t)[j] : row[0];
  }
}

void Eager::zero_ignored(const Tensor& y, const Targets& target, int64_t ignore_index) const {
  const Array zero = Array::Zero(y.shape[2]);
  for (int64_t t = 0; t < y.shape[1]; ++t)
    if (target.data[t] == ignore_index) write(zero, y, 0, t);
}

}  // namespace tigon::naive
