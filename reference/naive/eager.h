// SPDX-License-Identifier: Apache-2.0
// A tiny eager framework: tensors that own their memory and primitives that read and write whole
// tensors, one launch each. The unfused baselines are written in it once; eager_host.cpp runs the
// primitives in Eigen, eager_cuda.cpp in cuDNN and cuBLAS.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <string>

#include "kernels/signature/signature.h"

namespace tigon::naive {

using Shape = std::array<int64_t, 3>;

// Up to three dimensions, leading ones are 1. Strides in elements; the last one is 1.
struct Tensor {
  DType type = DType::kF32;
  void* data = nullptr;
  Shape shape{}, stride{};
  std::shared_ptr<void> memory;  // null: the caller's

  int64_t size() const { return shape[0] * shape[1] * shape[2]; }
  // Elements [begin, begin + count) of a dimension.
  Tensor slice(int dimension, int64_t begin, int64_t count) const;
};

// A signature's views as tensors.
template <class T>
Tensor as_tensor(T* data, Shape shape, Shape stride) {
  using Elem = std::remove_const_t<T>;
  return {dtype_of<Elem>, const_cast<Elem*>(data), shape, stride, nullptr};
}
template <class T>
Tensor as_matrix(const View<T, 2>& v) {  // [T, N]
  return as_tensor(v.data, {1, v.shape[0], v.shape[1]}, {v.shape[0] * v.stride[0], v.stride[0], 1});
}
template <class T>
Tensor as_heads(const View<T, 3>& v) {  // [T, heads, D]
  return as_tensor(v.data, {v.shape[0], v.shape[1], v.shape[2]}, {v.stride[0], v.stride[1], 1});
}
template <class T>
Tensor as_row(const View<T, 1>& v) {  // [1, N]
  return as_tensor(v.data, {1, 1, v.shape[0]}, {v.shape[0], v.shape[0], 1});
}
template <class T>
Tensor as_column(const View<T, 1>& v) {  // [T, 1]
  return as_tensor(v.data, {1, v.shape[0], 1}, {v.shape[0], 1, 1});
}

enum class Unary { kCopy, kNegate, kRsqrt, kExp, kLog, kTanh, kSilu };
// The backward ones take the forward's input and dy, and give dx.
enum class Binary { kAdd, kSub, kMul, kDiv, kMax, kSiluBackward, kTanhBackward };
enum class Over { kFeatures, kTokens };  // last dimension, the one before

// Declared error of the backend's tanh and of its derivative, relative to the terms that they are
// made of, in units of 2^-24 beyond a few roundings. 0: it has none.
double tanh_error();

// Every primitive reads its inputs in their storage type, computes in fp32 and rounds once to the
// type of its result. It throws what eagerly() turns into a Status. A result may be an input's
// memory where sizes and strides agree.
class Eager {
 public:
  explicit Eager(Stream stream) : stream_(stream) {}

  Tensor empty(DType type, Shape shape) const;
  Tensor zeros(DType type, Shape shape) const;
  void fill_zero(const Tensor& y) const;

  void unary(Unary op, const Tensor& x, const Tensor& y) const;
  Tensor unary(Unary op, const Tensor& x) const;
  // x itself if it has the type.
  Tensor cast(const Tensor& x, DType type) const;

  // b's dimensions of size 1 are repeated. The result has a's sizes and the wider of both types.
  void binary(Binary op, const Tensor& a, const Tensor& b, const Tensor& y) const;
  Tensor binary(Binary op, const Tensor& a, const Tensor& b) const;
  void binary(Binary op, const Tensor& a, float b, const Tensor& y) const;
  Tensor binary(Binary op, const Tensor& a, float b) const;

  // y = scale * sum(x); fp32, x [1, T, N] contiguous, y of size 1 where it was summed.
  void sum(const Tensor& x, Over over, float scale, const Tensor& y) const;
  Tensor sum(const Tensor& x, Over over, float scale = 1.0f) const;

  // Over the last dimension; fp32 [1, T, N], contiguous but for x. backward: dy - exp(y) sum(dy).
  Tensor log_softmax(const Tensor& x) const;
  void log_softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) const;

  // Over the last dimension; all of one type, and [1, T, N] contiguous. backward: y (dy - sum(y
  // dy)).
  void softmax(const Tensor& x, const Tensor& y) const;
  void softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) const;

  // c [m, n] = op(a) op(b), op transposes where told; sums in fp32. All of one type.
  void matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
              const Tensor& c) const;

  // What follows takes targets [T]; "valid" is in [0, V).
  using Targets = View<const int64_t, 1>;
  // fp32 [1, T, 1]: 1 where the target is not ignored, else 0.
  Tensor not_ignored(const Targets& target, int64_t ignore_index) const;
  // fp32 [1, T, 1]: x[t, target[t]]; NaN where the target is not valid. x is fp32 [1, T, V].
  Tensor gather(const Tensor& x, const Targets& target) const;
  // y[t, :] = x[row[t], :]; NaN where that is no row of x. Both are fp32.
  void take_rows(const Tensor& x, const int64_t* row, const Tensor& y) const;
  // y[t, target[t]] = value[t]; where the target is not valid y[t, 0] = NaN. y is fp32 [1, T, V].
  void scatter(const Tensor& y, const Targets& target, const Tensor& value) const;
  // lse[t] = x[t, j] - log_softmax[t, j] for the first finite x[t, j], else x[t, 0].
  void log_sum_exp(const Tensor& x, const Tensor& log_softmax, const Tensor& lse) const;
  // Rows of y [1, T, N] whose target is ignored become 0.
  void zero_ignored(const Tensor& y, const Targets& target, int64_t ignore_index) const;

 private:
  void multiply(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                const Tensor& c) const;

  Stream stream_;
};

// A primitive's failure. The reason outlives everything.
struct Failure {
  Status status;
};
[[noreturn]] void fail(Status::Code code, const std::string& reason);

// Runs steps(eager) and returns what went wrong: kOutOfMemory when an intermediate does not fit,
// kLaunchFailed when a library call fails, kUnsupported when the library cannot do a primitive.
Status eagerly(Stream stream, const std::function<void(const Eager&)>& steps);

}  // namespace tigon::naive
