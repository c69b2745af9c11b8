// SPDX-License-Identifier: Apache-2.0
// From logits.float() on all is fp32 until the gradient is cast back.
#include "reference/naive/log_prob.h"

#include "reference/naive/eager.h"

namespace tigon::naive {
namespace {

// The logits in float, divided by the temperature.
template <class Args>
Tensor tempered(const Eager& e, const Args& a) {
  const Tensor x = e.cast(as_matrix(a.logits), DType::kF32);
  return a.temperature == 1.0f ? x : e.binary(Binary::kDiv, x, a.temperature);
}

// d result / d log probabilities, a whole [T, V] as the backward passes of gather and of the sum
// over -p log p make it.
template <class P>
Tensor logp_gradient(const Eager& e, const log_prob::Backward<P>& a, const Tensor& logp) {
  const Tensor d = e.zeros(DType::kF32, logp.shape);
  e.scatter(d, a.target, as_column(a.dlogp));
  if (!a.dentropy) return d;
  const Tensor of_sum =
      e.binary(Binary::kMul, e.unary(Unary::kExp, logp), e.binary(Binary::kAdd, logp, 1.0f));
  return e.binary(Binary::kSub, d, e.binary(Binary::kMul, of_sum, as_column(a.dentropy)));
}

}  // namespace

template <class P>
Status forward(const log_prob::Forward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.target.shape[0] == 0) return;
    const Tensor z = tempered(e, a), logp = e.log_softmax(z);
    const auto finish = [&](const Tensor& rows, const View<float, 1>& out) {
      e.unary(Unary::kCopy, rows, as_column(out));
      e.zero_ignored(as_column(out), a.target, a.ignore_index);
    };
    finish(e.gather(logp, a.target), a.logp);
    const Tensor lse = as_column(a.lse);
    e.log_sum_exp(z, logp, lse);
    e.zero_ignored(lse, a.target, a.ignore_index);
    if (!a.entropy) return;
    const Tensor terms = e.binary(Binary::kMul, e.unary(Unary::kExp, logp), logp);
    finish(e.sum(terms, Over::kFeatures, -1.0f), a.entropy);
  });
}

template <class P>
Status backward(const log_prob::Backward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.target.shape[0] == 0) return;
    const Tensor logp = e.binary(Binary::kSub, tempered(e, a), as_column(a.lse));
    const Tensor d = e.empty(DType::kF32, logp.shape), dlogits = as_matrix(a.dlogits);
    e.log_softmax_backward(logp, logp_gradient(e, a, logp), d);
    if (a.temperature == 1.0f)
      e.unary(Unary::kCopy, d, dlogits);
    else
      e.unary(Unary::kCopy, e.binary(Binary::kDiv, d, a.temperature), dlogits);
    e.zero_ignored(dlogits, a.target, a.ignore_index);
  });
}

template Status forward(const log_prob::Forward<F32>&, Stream);
template Status forward(const log_prob::Forward<BF16>&, Stream);
template Status forward(const log_prob::Forward<F16>&, Stream);
template Status backward(const log_prob::Backward<F32>&, Stream);
template Status backward(const log_prob::Backward<BF16>&, Stream);
template Status backward(const log_prob::Backward<F16>&, Stream);

}  // namespace tigon::naive
