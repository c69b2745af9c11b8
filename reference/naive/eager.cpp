// SPDX-License-Identifier: Apache-2.0
// The parts of the eager framework that do not depend on where it runs.
#include "reference/naive/eager.h"

#include <mutex>
#include <set>

#include "kernels/device/runtime.h"

namespace tigon::naive {

Tensor Tensor::slice(int dimension, int64_t begin, int64_t count) const {
  Tensor part = *this;
  part.data = static_cast<std::byte*>(data) +
              static_cast<size_t>(begin * stride[dimension]) * size_of(type);
  part.shape[dimension] = count;
  return part;
}

Tensor Eager::empty(DType type, Shape shape) const {
  Tensor t{type, nullptr, shape, {shape[1] * shape[2], shape[2], 1}, nullptr};
  t.data = device_alloc_async(static_cast<size_t>(t.size()) * size_of(type), stream_);
  t.memory.reset(t.data, [stream = stream_](void* p) {
    try {
      device_free_async(p, stream);
    } catch (const DeviceError&) {  // the step that broke the device has said so
    }
  });
  return t;
}

Tensor Eager::zeros(DType type, Shape shape) const {
  const Tensor t = empty(type, shape);
  fill_zero(t);
  return t;
}

void Eager::fill_zero(const Tensor& y) const {
  const bool gaps = y.shape[1] > 1 && y.stride[1] != y.shape[2];
  for (int64_t j = 0; j < (gaps ? y.shape[1] : 1); ++j) {
    const int64_t elements = gaps ? y.shape[2] : y.size();
    device_fill(y.slice(1, j, 1).data, 0, static_cast<size_t>(elements) * size_of(y.type), stream_);
  }
}

Tensor Eager::unary(Unary op, const Tensor& x) const {
  const Tensor y = empty(x.type, x.shape);
  unary(op, x, y);
  return y;
}

Tensor Eager::cast(const Tensor& x, DType type) const {
  if (x.type == type) return x;
  const Tensor y = empty(type, x.shape);
  unary(Unary::kCopy, x, y);
  return y;
}

Tensor Eager::binary(Binary op, const Tensor& a, const Tensor& b) const {
  const Tensor y = empty(b.type == DType::kF32 ? b.type : a.type, a.shape);
  binary(op, a, b, y);
  return y;
}

Tensor Eager::binary(Binary op, const Tensor& a, float b) const {
  const Tensor y = empty(a.type, a.shape);
  binary(op, a, b, y);
  return y;
}

Tensor Eager::sum(const Tensor& x, Over over, float scale) const {
  Shape shape = x.shape;
  shape[over == Over::kFeatures ? 2 : 1] = 1;
  const Tensor y = empty(DType::kF32, shape);
  sum(x, over, scale, y);
  return y;
}

void Eager::matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                   const Tensor& c) const {
  if (c.size() == 0) return;
  if (a.size() == 0) return fill_zero(c);
  multiply(a, transpose_a, b, transpose_b, c);
}

void fail(Status::Code code, const std::string& reason) {
  static std::mutex mutex;
  static std::set<std::string> reasons;  // nodes stay where they are
  const std::lock_guard lock(mutex);
  throw Failure{{code, reasons.insert(reason).first->c_str()}};
}

Status eagerly(Stream stream, const std::function<void(const Eager&)>& steps) {
  try {
    try {
      steps(Eager(stream));
      return {};
    } catch (const DeviceOutOfMemory& e) {
      fail(Status::kOutOfMemory, e.what());
    } catch (const DeviceError& e) {
      fail(Status::kLaunchFailed, e.what());
    }
  } catch (const Failure& f) {
    return f.status;
  }
}

}  // namespace tigon::naive
