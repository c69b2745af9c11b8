// SPDX-License-Identifier: Apache-2.0
// From logits.float() on all is fp32 until the gradient is cast back.
#include "reference/naive/divergence.h"

#include <cmath>

#include "reference/naive/eager.h"

namespace tigon::naive {
namespace {

using divergence::Kind;

Tensor tempered(const Eager& e, const Tensor& logits, float temperature) {
  const Tensor z = e.cast(logits, DType::kF32);
  return temperature == 1.0f ? z : e.binary(Binary::kDiv, z, temperature);
}

// At its ends jsd is one of the others.
template <class Args>
Kind kind_of(const Args& a) {
  if (a.kind != Kind::kJsd) return a.kind;
  return a.beta == 0.0f ? Kind::kForwardKl : a.beta == 1.0f ? Kind::kReverseKl : Kind::kJsd;
}

// log(beta p + (1 - beta) q), of logarithms.
Tensor log_mixture(const Eager& e, const Tensor& log_q, const Tensor& log_p, float beta) {
  const Tensor a = e.binary(Binary::kAdd, log_p, std::log(beta));
  const Tensor b = e.binary(Binary::kAdd, log_q, std::log1p(-beta));
  const Tensor most = e.binary(Binary::kMax, a, b);
  const auto power = [&](const Tensor& x) {
    return e.unary(Unary::kExp, e.binary(Binary::kSub, x, most));
  };
  return e.binary(Binary::kAdd, most,
                  e.unary(Unary::kLog, e.binary(Binary::kAdd, power(a), power(b))));
}

// p (log p - log q), kl_div without its reduction.
Tensor kl(const Eager& e, const Tensor& log_p, const Tensor& log_q) {
  return e.binary(Binary::kMul, e.unary(Unary::kExp, log_p), e.binary(Binary::kSub, log_p, log_q));
}

// q c, with c as in kernels/divergence/divergence.h.
Tensor slope_terms(const Eager& e, Kind kind, float beta, const Tensor& log_q,
                   const Tensor& log_p) {
  if (kind == Kind::kReverseKl) return kl(e, log_q, log_p);
  const Tensor of_student = kl(e, log_q, log_mixture(e, log_q, log_p, beta));
  return e.binary(Binary::kMul, of_student, 1.0f - beta);
}

template <class Args>
void zero_ignored(const Eager& e, const Args& a, const Tensor& rows) {
  if (a.target) e.zero_ignored(rows, a.target, a.ignore_index);
}

}  // namespace

template <class P>
Status forward(const divergence::Forward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.loss.shape[0] == 0) return;
    const Tensor x = tempered(e, as_matrix(a.logits), a.temperature);
    const Tensor y = tempered(e, as_matrix(a.teacher), a.temperature);
    const Tensor log_q = e.log_softmax(x), log_p = e.log_softmax(y);
    const Tensor loss = as_column(a.loss), slope = as_column(a.slope);
    const Kind kind = kind_of(a);
    if (kind == Kind::kForwardKl) {
      e.sum(kl(e, log_p, log_q), Over::kFeatures, 1.0f, loss);
      e.fill_zero(slope);
    } else {
      const Tensor terms = slope_terms(e, kind, a.beta, log_q, log_p);
      e.sum(terms, Over::kFeatures, 1.0f, slope);
      if (kind == Kind::kReverseKl) {
        e.unary(Unary::kCopy, slope, loss);
      } else {
        const Tensor of_teacher = kl(e, log_p, log_mixture(e, log_q, log_p, a.beta));
        e.binary(Binary::kAdd, slope, e.sum(of_teacher, Over::kFeatures, a.beta), loss);
      }
    }
    const Tensor lse = as_column(a.lse), teacher_lse = as_column(a.teacher_lse);
    e.log_sum_exp(x, log_q, lse);
    e.log_sum_exp(y, log_p, teacher_lse);
    for (const Tensor& rows : {loss, slope, lse, teacher_lse}) zero_ignored(e, a, rows);
  });
}

template <class P>
Status backward(const divergence::Backward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.dloss.shape[0] == 0) return;
    const auto log_p_of = [&](const View<const typename P::Elem, 2>& logits,
                              const View<const float, 1>& lse) {
      return e.binary(Binary::kSub, tempered(e, as_matrix(logits), a.temperature), as_column(lse));
    };
    const Tensor log_q = log_p_of(a.logits, a.lse), log_p = log_p_of(a.teacher, a.teacher_lse);
    const Tensor q = e.unary(Unary::kExp, log_q);
    const Kind kind = kind_of(a);
    const Tensor d = kind == Kind::kForwardKl
                         ? e.binary(Binary::kSub, q, e.unary(Unary::kExp, log_p))
                         : e.binary(Binary::kSub, slope_terms(e, kind, a.beta, log_q, log_p),
                                    e.binary(Binary::kMul, q, as_column(a.slope)));
    const Tensor scaled = e.binary(Binary::kMul, d, as_column(a.dloss));
    const Tensor dlogits = as_matrix(a.dlogits);
    if (a.temperature == 1.0f)
      e.unary(Unary::kCopy, scaled, dlogits);
    else
      e.unary(Unary::kCopy, e.binary(Binary::kDiv, scaled, a.temperature), dlogits);
    zero_ignored(e, a, dlogits);
  });
}

template Status forward(const divergence::Forward<F32>&, Stream);
template Status forward(const divergence::Forward<BF16>&, Stream);
template Status forward(const divergence::Forward<F16>&, Stream);
template Status backward(const divergence::Backward<F32>&, Stream);
template Status backward(const divergence::Backward<BF16>&, Stream);
template Status backward(const divergence::Backward<F16>&, Stream);

}  // namespace tigon::naive
