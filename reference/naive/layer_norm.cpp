// SPDX-License-Identifier: Apache-2.0
// Forward: x.float(), mean, x - mean, square, mean, + eps, rsqrt, x_hat, w * x_hat, + b, cast.
// Backward: the gradient of these steps.
#include "reference/naive/layer_norm.h"

#include "reference/naive/eager.h"

namespace tigon::naive {

namespace {

Tensor mean_over_features(const Eager& e, const Tensor& x) {
  return e.sum(x, Over::kFeatures, 1.0f / static_cast<float>(x.shape[2]));
}

// A contiguous copy, because sums need one.
Tensor in_fp32(const Eager& e, const Tensor& x) {
  const Tensor copy = e.empty(DType::kF32, x.shape);
  e.unary(Unary::kCopy, x, copy);
  return copy;
}

}  // namespace

template <class P>
Status forward(const layer_norm::Forward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.x.size() == 0) return;
    const Tensor x = in_fp32(e, as_matrix(a.x));
    const Tensor mean = as_column(a.mean), rstd = as_column(a.rstd);
    e.sum(x, Over::kFeatures, 1.0f / static_cast<float>(x.shape[2]), mean);
    Tensor y = e.binary(Binary::kSub, x, mean);
    const Tensor variance = mean_over_features(e, e.binary(Binary::kMul, y, y));
    e.unary(Unary::kRsqrt, e.binary(Binary::kAdd, variance, a.eps), rstd);
    y = e.binary(Binary::kMul, y, rstd);
    if (a.w) y = e.binary(Binary::kMul, y, e.cast(as_row(a.w), DType::kF32));
    if (a.b) y = e.binary(Binary::kAdd, y, e.cast(as_row(a.b), DType::kF32));
    e.unary(Unary::kCopy, y, as_matrix(a.y));
  });
}

template <class P>
Status backward(const layer_norm::Backward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.x.shape[0] == 0) {
      if (a.dw) e.fill_zero(as_row(a.dw));
      if (a.db) e.fill_zero(as_row(a.db));
    }
    if (a.x.size() == 0) return;
    const Tensor x = in_fp32(e, as_matrix(a.x)), rstd = as_column(a.rstd);
    Tensor dy = in_fp32(e, as_matrix(a.dy));
    const Tensor x_hat = e.binary(Binary::kMul, e.binary(Binary::kSub, x, as_column(a.mean)), rstd);
    if (a.dw) e.sum(e.binary(Binary::kMul, dy, x_hat), Over::kTokens, 1.0f, as_row(a.dw));
    if (a.db) e.sum(dy, Over::kTokens, 1.0f, as_row(a.db));
    if (a.w) dy = e.binary(Binary::kMul, dy, e.cast(as_row(a.w), DType::kF32));
    const Tensor through_mean = mean_over_features(e, dy);
    const Tensor projection = mean_over_features(e, e.binary(Binary::kMul, dy, x_hat));
    Tensor dx = e.binary(Binary::kSub, dy, through_mean);
    dx = e.binary(Binary::kSub, dx, e.binary(Binary::kMul, x_hat, projection));
    e.unary(Unary::kCopy, e.binary(Binary::kMul, dx, rstd), as_matrix(a.dx));
  });
}

template Status forward(const layer_norm::Forward<F32>&, Stream);
template Status forward(const layer_norm::Forward<BF16>&, Stream);
template Status forward(const layer_norm::Forward<F16>&, Stream);
template Status backward(const layer_norm::Backward<F32>&, Stream);
template Status backward(const layer_norm::Backward<BF16>&, Stream);
template Status backward(const layer_norm::Backward<F16>&, Stream);

}  // namespace tigon::naive
