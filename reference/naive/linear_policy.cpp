// SPDX-License-Identifier: Apache-2.0
// logits = x w^T + bias are whole and rounded to the storage type, and so is their gradient; all
// between them is fp32, a step for each operator of TRL's GRPOTrainer and its derivative.
#include "reference/naive/linear_policy.h"

#include "reference/naive/linear_head.h"

namespace tigon::naive {
namespace {

using linear_policy::Objective;
using linear_policy::Options;

// fp32 tensors [T], a token each.
class Tokens {
 public:
  explicit Tokens(const Eager& e) : e_(e) {}

  Tensor add(const Tensor& a, const Tensor& b) const { return e_.binary(Binary::kAdd, a, b); }
  Tensor add(const Tensor& a, float b) const { return e_.binary(Binary::kAdd, a, b); }
  Tensor sub(const Tensor& a, const Tensor& b) const { return e_.binary(Binary::kSub, a, b); }
  Tensor mul(const Tensor& a, const Tensor& b) const { return e_.binary(Binary::kMul, a, b); }
  Tensor mul(const Tensor& a, float b) const { return e_.binary(Binary::kMul, a, b); }
  Tensor div(const Tensor& a, const Tensor& b) const { return e_.binary(Binary::kDiv, a, b); }
  Tensor exp(const Tensor& a) const { return e_.unary(Unary::kExp, a); }
  Tensor negate(const Tensor& a) const { return e_.unary(Unary::kNegate, a); }
  Tensor at_least(const Tensor& a, float b) const { return e_.binary(Binary::kMax, a, b); }
  Tensor at_most(const Tensor& a, float b) const { return negate(at_least(negate(a), -b)); }
  Tensor smaller(const Tensor& a, const Tensor& b) const {
    return negate(e_.binary(Binary::kMax, negate(a), negate(b)));
  }
  // 1 where a is above 0, else 0.
  Tensor step(const Tensor& a) const { return at_most(mul(at_least(a, 0.0f), 1e37f), 1.0f); }
  // a where `where` is 1, b where it is 0.
  Tensor choose(const Tensor& where, const Tensor& a, const Tensor& b) const {
    return add(mul(where, a), mul(add(negate(where), 1.0f), b));
  }

 private:
  const Eager& e_;
};

// The losses of tokens and their derivatives by logp.
struct Losses {
  Tensor value, slope;
};

Losses clip_loss(const Tokens& t, const Options& o, const Tensor& ratio, const Tensor& advantage) {
  const float low = 1.0f - o.clip_low, high = 1.0f + o.clip_high;
  const Tensor bounded = o.delta > 0.0f ? t.at_most(ratio, o.delta) : ratio;
  const Tensor first = t.mul(bounded, advantage);
  const Tensor second = t.mul(t.at_most(t.at_least(ratio, low), high), advantage);
  const Tensor value = t.negate(t.smaller(first, second));
  // Of a good token above, of a bad one below or beyond delta.
  const auto above = [&](float bound) { return t.step(t.add(ratio, -bound)); };
  const Tensor good = t.step(advantage), bad = t.step(t.negate(advantage));
  Tensor beyond = t.step(t.add(t.negate(ratio), low));
  if (o.delta > 0.0f) beyond = t.add(beyond, above(std::max(o.delta, high)));
  beyond = t.add(t.mul(bad, beyond),
                 t.mul(good, above(o.delta > 0.0f ? std::min(o.delta, high) : high)));
  const Tensor moves = t.add(t.negate(beyond), 1.0f);
  return {value, t.negate(t.mul(t.mul(ratio, advantage), moves))};
}

Losses cispo_loss(const Tokens& t, const Options& o, const Tensor& logp, const Tensor& ratio,
                  const Tensor& advantage) {
  const Tensor slope = t.negate(t.mul(t.at_most(ratio, o.clip_high), advantage));
  return {t.mul(slope, logp), slope};
}

Losses sapo_loss(const Tokens& t, const Options& o, const Tensor& ratio, const Tensor& advantage) {
  const Tensor zero = t.mul(advantage, 0.0f);
  const Tensor temperature =
      t.choose(t.step(advantage), t.add(zero, o.sapo_positive), t.add(zero, o.sapo_negative));
  const Tensor e = t.exp(t.mul(temperature, t.add(t.negate(ratio), 1.0f)));
  const Tensor gate = t.div(t.add(zero, 1.0f), t.add(e, 1.0f));
  const Tensor value = t.mul(t.div(t.mul(advantage, -4.0f), temperature), gate);
  const Tensor slope = t.mul(t.mul(t.mul(gate, gate), e), t.mul(ratio, t.mul(advantage, -4.0f)));
  return {value, slope};
}

Losses losses_of(const Tokens& t, const Options& o, const Tensor& logp, const Tensor& ratio,
                 const Tensor& advantage) {
  if (o.objective == Objective::kCispo) return cispo_loss(t, o, logp, ratio, advantage);
  if (o.objective == Objective::kSapo) return sapo_loss(t, o, ratio, advantage);
  return clip_loss(t, o, ratio, advantage);
}

// All of a call that has [T]: losses, weighted, their derivatives, and k3.
struct Rows {
  Losses losses;
  Tensor kl;
};
template <class Args>
Rows rows_of(const Tokens& t, const Args& a, const Tensor& logp) {
  // 0, and NaN where the target is no class: cuDNN's minimum takes the number beside a NaN.
  const Tensor zero = t.mul(t.exp(logp), 0.0f);
  const Tensor ratio = a.old_logp ? t.exp(t.sub(logp, as_column(a.old_logp))) : t.add(zero, 1.0f);
  Tensor advantage = as_column(a.advantage);
  if (a.sampling_logp) {
    const Tensor apart = t.sub(as_column(a.old_logp), as_column(a.sampling_logp));
    advantage = t.mul(advantage, t.at_most(t.exp(apart), a.importance_cap));
  }
  Losses losses = losses_of(t, a, logp, ratio, advantage);
  losses = {t.add(losses.value, zero), t.add(losses.slope, zero)};
  Tensor kl = zero;
  if (a.ref_logp) {
    const Tensor d = t.sub(as_column(a.ref_logp), logp), grown = t.add(t.exp(d), -1.0f);
    kl = t.sub(grown, d);
    losses.value = t.add(losses.value, t.mul(kl, a.kl_weight));
    losses.slope = t.sub(losses.slope, t.mul(grown, a.kl_weight));
  }
  if (a.weight) {
    losses.value = t.mul(losses.value, as_column(a.weight));
    losses.slope = t.mul(losses.slope, as_column(a.weight));
  }
  return {losses, kl};
}

// What mean divides by; fp32 [1, 1, 1].
template <class Args>
Tensor divisor(const Eager& e, const Args& a) {
  if (a.normaliser) return as_row(a.normaliser);
  const Tensor rows = e.sum(e.not_ignored(a.target, a.ignore_index), Over::kTokens);
  return e.binary(Binary::kMax, rows, 1.0f);
}

template <class Args>
void write_result(const Eager& e, const Args& a, const Tensor& rows, const View<float, 1>& out) {
  if (!out) return;
  e.zero_ignored(rows, a.target, a.ignore_index);
  if (a.reduction == Reduction::kNone) return e.unary(Unary::kCopy, rows, as_column(out));
  const Tensor sum = e.sum(rows, Over::kTokens);
  const bool mean = a.reduction == Reduction::kMean;
  e.unary(Unary::kCopy, mean ? e.binary(Binary::kDiv, sum, divisor(e, a)) : sum, as_row(out));
}

// Writes what is returned of rows; gives log_softmax [T, V] and dloss/dlogp [T].
struct LogProbs {
  Tensor all, slope;
};
template <class Args>
LogProbs write_losses(const Eager& e, const Args& a, const Tensor& logits) {
  if (a.clipped) fail(Status::kUnsupported, "naive: no primitive counts");
  const Tensor z = e.cast(logits, DType::kF32);
  const Tensor all =
      e.log_softmax(a.temperature == 1.0f ? z : e.binary(Binary::kDiv, z, a.temperature));
  const Tensor logp = e.gather(all, a.target);
  const Rows rows = rows_of(Tokens(e), a, logp);
  write_result(e, a, rows.losses.value, a.loss);
  write_result(e, a, rows.kl, a.kl);
  if (a.entropy) {
    const Tensor terms = e.binary(Binary::kMul, e.unary(Unary::kExp, all), all);
    write_result(e, a, e.sum(terms, Over::kFeatures, -1.0f), a.entropy);
  }
  if (a.logp) {
    e.unary(Unary::kCopy, logp, as_column(a.logp));
    e.zero_ignored(as_column(a.logp), a.target, a.ignore_index);
  }
  return {all, rows.losses.slope};
}

template <class P>
void write_logits_gradient(const Eager& e, const linear_policy::ForwardBackward<P>& a,
                           const LogProbs& of, const Tensor& dlogits) {
  Tensor g = of.slope;
  if (a.dloss)
    g = e.binary(Binary::kMul, g,
                 a.reduction == Reduction::kNone ? as_column(a.dloss) : as_row(a.dloss));
  if (a.reduction == Reduction::kMean) g = e.binary(Binary::kDiv, g, divisor(e, a));
  if (a.temperature != 1.0f) g = e.binary(Binary::kDiv, g, a.temperature);
  const Tensor d = e.zeros(DType::kF32, of.all.shape), dz = e.empty(DType::kF32, of.all.shape);
  e.scatter(d, a.target, g);
  e.log_softmax_backward(of.all, d, dz);
  e.unary(Unary::kCopy, dz, dlogits);
  e.zero_ignored(dlogits, a.target, a.ignore_index);
}

// No rows: sums of nothing.
template <class Args>
bool wrote_nothing(const Eager& e, const Args& a) {
  if (a.target.shape[0] > 0) return false;
  for (const auto& out : {a.loss, a.kl, a.entropy})
    if (out && out.shape[0] > 0) e.fill_zero(as_row(out));
  return true;
}

}  // namespace

template <class P>
Status forward(const linear_policy::Forward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    refuse_row_bound(a);
    if (!wrote_nothing(e, a)) write_losses(e, a, logits_of(e, a));
  });
}

template <class P>
Status forward_backward(const linear_policy::ForwardBackward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    refuse_row_bound(a);
    const Tensor logits = logits_of(e, a), dlogits = e.empty(logits.type, logits.shape);
    if (!wrote_nothing(e, a)) write_logits_gradient(e, a, write_losses(e, a, logits), dlogits);
    write_gradients(e, a, dlogits);
  });
}

template Status forward(const linear_policy::Forward<F32>&, Stream);
template Status forward(const linear_policy::Forward<BF16>&, Stream);
template Status forward(const linear_policy::Forward<F16>&, Stream);
template Status forward_backward(const linear_policy::ForwardBackward<F32>&, Stream);
template Status forward_backward(const linear_policy::ForwardBackward<BF16>&, Stream);
template Status forward_backward(const linear_policy::ForwardBackward<F16>&, Stream);

}  // namespace tigon::naive
