// SPDX-License-Identifier: Apache-2.0
// Forward: x.float(), x^2, mean, + eps, rsqrt, x * rstd, round, w * x. Backward: what autograd runs
// for these steps. A weight with an offset (Gemma) is multiplied in fp32.
#include "reference/naive/rms_norm.h"

#include "reference/naive/eager.h"

namespace tigon::naive {

using tigon::rms_norm::Casting;

namespace {

// offset + w in `type`, [1, H].
template <class View>
Tensor weight(const Eager& e, const View& w, float offset, DType type) {
  const Tensor cast = e.cast(as_row(w), type);
  return offset == 0.0f ? cast : e.binary(Binary::kAdd, cast, offset);
}

// dx of x * rstd(x), dy and x in fp32; rstd = (mean(x^2) + eps)^(-1/2).
void normalize_backward(const Eager& e, const Tensor& dy, const Tensor& x, const Tensor& rstd,
                        const Tensor& dx) {
  const Tensor direct = e.binary(Binary::kMul, dy, rstd);
  const Tensor drstd = e.sum(e.binary(Binary::kMul, dy, x), Over::kFeatures);
  const Tensor cube = e.binary(Binary::kMul, e.binary(Binary::kMul, rstd, rstd), rstd);
  const Tensor dsum = e.binary(Binary::kMul, e.binary(Binary::kMul, drstd, cube),
                               -1.0f / static_cast<float>(x.shape[2]));
  const Tensor through_rstd = e.binary(Binary::kMul, x, dsum);
  if (dx.type == DType::kF32)
    e.binary(Binary::kAdd, direct, through_rstd, dx);
  else
    e.unary(Unary::kCopy, e.binary(Binary::kAdd, direct, through_rstd), dx);
}

}  // namespace

template <class P>
Status forward(const rms_norm::Forward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.x.size() == 0) return;
    const DType elem = dtype_of<typename P::Elem>;
    const Tensor x = e.cast(as_matrix(a.x), DType::kF32), rstd = as_column(a.rstd);
    const Tensor variance =
        e.sum(e.binary(Binary::kMul, x, x), Over::kFeatures, 1.0f / static_cast<float>(x.shape[2]));
    e.unary(Unary::kRsqrt, e.binary(Binary::kAdd, variance, a.eps), rstd);
    const bool cast = a.casting != Casting::kNone;
    const Tensor row = cast ? x : as_matrix(a.x), factor = cast ? rstd : e.cast(rstd, elem);
    if (!a.w) return e.binary(Binary::kMul, row, factor, as_matrix(a.y));
    Tensor y = e.binary(Binary::kMul, row, factor);
    if (a.casting == Casting::kLlama) y = e.cast(y, elem);
    e.binary(Binary::kMul, y, weight(e, a.w, a.offset, y.type), as_matrix(a.y));
  });
}

template <class P>
Status backward(const rms_norm::Backward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.dw && a.x.shape[0] == 0) return e.fill_zero(as_row(a.dw));
    if (a.x.size() == 0) return;
    const DType type = a.offset == 0.0f ? dtype_of<typename P::Elem> : DType::kF32;
    const Tensor x = e.cast(as_matrix(a.x), DType::kF32), rstd = as_column(a.rstd);
    Tensor dy = e.cast(as_matrix(a.dy), type);
    if (a.dw) {
      const Tensor normalized = e.cast(e.binary(Binary::kMul, x, rstd), type);
      const Tensor product = e.empty(DType::kF32, x.shape);
      e.binary(Binary::kMul, dy, normalized, product);
      e.sum(product, Over::kTokens, 1.0f, as_row(a.dw));
    }
    if (a.w) dy = e.binary(Binary::kMul, dy, weight(e, a.w, a.offset, type));
    dy = e.cast(dy, DType::kF32);
    normalize_backward(e, dy, x, rstd, as_matrix(a.dx));
  });
}

template Status forward(const rms_norm::Forward<F32>&, Stream);
template Status forward(const rms_norm::Forward<BF16>&, Stream);
template Status forward(const rms_norm::Forward<F16>&, Stream);
template Status backward(const rms_norm::Backward<F32>&, Stream);
template Status backward(const rms_norm::Backward<BF16>&, Stream);
template Status backward(const rms_norm::Backward<F16>&, Stream);

}  // namespace tigon::naive
