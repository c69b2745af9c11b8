// SPDX-License-Identifier: Apache-2.0
// The softcap's steps round to the storage type; from logits.float() on all is fp32 until the
// gradient is cast back.
#include "reference/naive/cross_entropy.h"

#include "reference/naive/eager.h"

namespace tigon::naive {
namespace {

// Logits and what autograd keeps of the softcap.
struct Capped {
  Tensor scaled;  // logits / softcap
  Tensor value;   // softcap * tanh(scaled), or the logits
};

Capped softcap(const Eager& e, const Tensor& logits, const LossOptions& o) {
  if (o.softcap <= 0.0f) return {{}, logits};
  const Tensor scaled = e.binary(Binary::kDiv, logits, o.softcap);
  return {scaled, e.binary(Binary::kMul, e.unary(Unary::kTanh, scaled), o.softcap)};
}

// Rows that are not ignored, at least 1, or the normaliser; fp32 [1, 1, 1].
template <class Args>
Tensor count_rows(const Eager& e, const Args& a) {
  if (a.normaliser) return as_row(a.normaliser);
  const Tensor rows = e.sum(e.not_ignored(a.target, a.ignore_index), Over::kTokens);
  return e.binary(Binary::kMax, rows, 1.0f);
}

// Class weights as one row [V], and of each row's target [T], 0 where that is ignored. Without
// memory: 1 each.
struct Weights {
  Tensor classes, targets;
  explicit operator bool() const { return classes.data != nullptr; }
};

template <class Args>
Weights weights_of(const Eager& e, const Args& a) {
  if (!a.class_weight) return {};
  Weights w{as_row(a.class_weight), e.empty(DType::kF32, {1, a.target.shape[0], 1})};
  e.take_rows(as_column(a.class_weight), a.target.data, w.targets);
  e.zero_ignored(w.targets, a.target, a.ignore_index);
  return w;
}

// What the mean divides by.
template <class Args>
Tensor divisor(const Eager& e, const Weights& w, const Args& a) {
  return w && !a.normaliser ? e.sum(w.targets, Over::kTokens) : count_rows(e, a);
}

// Cross entropy of each row [T] from log probabilities [T, V].
Tensor row_losses(const Eager& e, const Tensor& logp, const Weights& w,
                  const Eager::Targets& target, const LossOptions& o) {
  Tensor loss = e.binary(Binary::kMul, e.gather(logp, target), o.label_smoothing - 1.0f);
  if (w) loss = e.binary(Binary::kMul, loss, w.targets);
  if (o.label_smoothing != 0.0f) {
    const float share = -o.label_smoothing / static_cast<float>(logp.shape[2]);
    const Tensor weighted = w ? e.binary(Binary::kMul, logp, w.classes) : logp;
    loss = e.binary(Binary::kAdd, loss, e.sum(weighted, Over::kFeatures, share));
  }
  e.zero_ignored(loss, target, o.ignore_index);
  return loss;
}

Tensor z_parts(const Eager& e, const Tensor& lse, const LossOptions& o) {
  return e.binary(Binary::kMul, e.binary(Binary::kMul, lse, lse), o.z_loss);
}

// The rows [T] reduced; `count` only with mean.
Tensor reduced(const Eager& e, const Tensor& rows, const LossOptions& o,
               const std::function<Tensor()>& count) {
  if (o.reduction == Reduction::kNone) return rows;
  const Tensor sum = e.sum(rows, Over::kTokens);
  return o.reduction == Reduction::kSum ? sum : e.binary(Binary::kDiv, sum, count());
}

// The loss and what is returned beside it; logp and lse are those of the rows.
template <class Args>
void write_loss(const Eager& e, const Args& a, const Tensor& logp, const Tensor& lse) {
  if (a.accuracy) fail(Status::kUnsupported, "naive: no primitive finds the largest of a row");
  const auto copy = [&](const Tensor& rows, const View<float, 1>& out) {
    const bool none = a.reduction == Reduction::kNone;
    e.unary(Unary::kCopy, rows, none ? as_column(out) : as_row(out));
  };
  const auto by_rows = [&] { return count_rows(e, a); };
  const Weights w = weights_of(e, a);
  Tensor loss =
      reduced(e, row_losses(e, logp, w, a.target, a), a, [&] { return divisor(e, w, a); });
  if (a.z_loss != 0.0f || a.z_part) {
    const Tensor z = reduced(e, z_parts(e, lse, a), a, by_rows);
    loss = e.binary(Binary::kAdd, loss, z);
    if (a.z_part) copy(z, a.z_part);
  }
  copy(loss, a.loss);
  if (!a.entropy) return;
  const Tensor terms = e.binary(Binary::kMul, e.unary(Unary::kExp, logp), logp);
  const Tensor entropy = e.sum(terms, Over::kFeatures, -1.0f);
  e.zero_ignored(entropy, a.target, a.ignore_index);
  copy(reduced(e, entropy, a, by_rows), a.entropy);
}

// d loss / d row loss, [T]; 0 for an ignored row. The z-loss has no weight.
template <class Args>
Tensor upstream(const Eager& e, const Args& a, const Tensor& divisor) {
  Tensor g = e.not_ignored(a.target, a.ignore_index);
  if (a.dloss) g = e.binary(Binary::kMul, g, as_column(a.dloss));
  if (a.reduction == Reduction::kMean) g = e.binary(Binary::kDiv, g, divisor);
  return g;
}

// d loss / d log probabilities, a whole [T, V] as nll_loss's backward makes it.
Tensor logp_gradient(const Eager& e, const Tensor& logp, const Tensor& g, const Weights& w,
                     const Eager::Targets& target, const LossOptions& o) {
  const Tensor d = e.zeros(DType::kF32, logp.shape);
  const Tensor at_target = e.binary(Binary::kMul, g, o.label_smoothing - 1.0f);
  e.scatter(d, target, w ? e.binary(Binary::kMul, at_target, w.targets) : at_target);
  if (o.label_smoothing == 0.0f) return d;
  const float share = -o.label_smoothing / static_cast<float>(logp.shape[2]);
  const Tensor everywhere = e.binary(Binary::kMul, g, share);
  if (!w) return e.binary(Binary::kAdd, d, everywhere);
  const Tensor ones = e.binary(Binary::kAdd, e.zeros(DType::kF32, logp.shape), 1.0f);
  const Tensor of_classes = e.binary(Binary::kMul, ones, w.classes);
  return e.binary(Binary::kAdd, d, e.binary(Binary::kMul, of_classes, everywhere));
}

// d z_loss lse^2 / d logits added to d: 2 z_loss lse g softmax.
Tensor add_z_gradient(const Eager& e, const Tensor& d, const Tensor& logp, const Tensor& lse,
                      const Tensor& g, const LossOptions& o) {
  const Tensor factor = e.binary(Binary::kMul, e.binary(Binary::kMul, lse, g), 2.0f * o.z_loss);
  return e.binary(Binary::kAdd, d, e.binary(Binary::kMul, e.unary(Unary::kExp, logp), factor));
}

// Writes the gradient over the logits.
template <class Args>
void write_gradient(const Eager& e, const Args& a, const Capped& capped, const Tensor& logp,
                    const Tensor& lse) {
  const Weights w = weights_of(e, a);
  const Tensor logits = as_matrix(a.logits);
  const Tensor g = upstream(e, a, divisor(e, w, a));
  // Nothing is left to do after log_softmax: no copy, as in a framework.
  const bool direct =
      logits.type == DType::kF32 && a.logits.contiguous() && a.z_loss == 0.0f && a.softcap <= 0.0f;
  Tensor d = direct ? logits : e.empty(DType::kF32, logits.shape);
  e.log_softmax_backward(logp, logp_gradient(e, logp, g, w, a.target, a), d);
  if (a.z_loss != 0.0f) d = add_z_gradient(e, d, logp, lse, upstream(e, a, count_rows(e, a)), a);
  if (a.softcap > 0.0f) {
    d = e.binary(Binary::kMul, e.cast(d, logits.type), a.softcap);
    d = e.binary(Binary::kTanhBackward, capped.scaled, d);
    e.binary(Binary::kDiv, d, a.softcap, logits);
  } else if (!direct) {
    e.unary(Unary::kCopy, d, logits);
  }
  e.zero_ignored(logits, a.target, a.ignore_index);
}

// The log probabilities [T, V]; writes lse.
Tensor log_probabilities(const Eager& e, const Tensor& x, const Eager::Targets& target,
                         const LossOptions& o, const Tensor& lse) {
  const Tensor logp = e.log_softmax(e.cast(x, DType::kF32));
  e.log_sum_exp(x, logp, lse);
  e.zero_ignored(lse, target, o.ignore_index);
  return logp;
}

// No tokens: a reduced loss is 0.
template <class Args>
bool nothing_to_do(const Eager& e, const Args& a) {
  if (a.target.shape[0] > 0) return false;
  if (a.reduction == Reduction::kNone) return true;
  for (const auto* out : {&a.loss, &a.z_part, &a.accuracy, &a.entropy})
    if (*out) e.fill_zero(as_row(*out));
  return true;
}

}  // namespace

template <class P>
Status forward(const cross_entropy::Forward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (nothing_to_do(e, a)) return;
    const Tensor lse = as_column(a.lse);
    const Tensor x = softcap(e, as_matrix(a.logits), a).value;
    const Tensor logp = log_probabilities(e, x, a.target, a, lse);
    write_loss(e, a, logp, lse);
  });
}

template <class P>
Status backward(const cross_entropy::Backward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.target.shape[0] == 0) return;
    const Tensor lse = as_column(a.lse);
    const Capped capped = softcap(e, as_matrix(a.logits), a);
    const Tensor logp = e.binary(Binary::kSub, e.cast(capped.value, DType::kF32), lse);
    write_gradient(e, a, capped, logp, lse);
  });
}

template <class P>
Status forward_backward(const cross_entropy::ForwardBackward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (nothing_to_do(e, a)) return;
    const Tensor lse = as_column(a.lse);
    const Capped capped = softcap(e, as_matrix(a.logits), a);
    const Tensor logp = log_probabilities(e, capped.value, a.target, a, lse);
    write_loss(e, a, logp, lse);
    write_gradient(e, a, capped, logp, lse);
  });
}

template Status forward(const cross_entropy::Forward<F32>&, Stream);
template Status forward(const cross_entropy::Forward<BF16>&, Stream);
template Status forward(const cross_entropy::Forward<F16>&, Stream);
template Status backward(const cross_entropy::Backward<F32>&, Stream);
template Status backward(const cross_entropy::Backward<BF16>&, Stream);
template Status backward(const cross_entropy::Backward<F16>&, Stream);
template Status forward_backward(const cross_entropy::ForwardBackward<F32>&, Stream);
template Status forward_backward(const cross_entropy::ForwardBackward<BF16>&, Stream);
template Status forward_backward(const cross_entropy::ForwardBackward<F16>&, Stream);

}  // namespace tigon::naive
