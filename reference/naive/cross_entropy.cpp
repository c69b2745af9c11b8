// The softcap's steps round to the storage type; from logits.float() on all is fp32 until the
// gradient is cast back.
#include "reference/naive/cross_entropy.h"

#include "reference/naive/eager.h"

namespace tigon::naive::cross_entropy {
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

// Rows that are not ignored, at least 1; fp32 [1, 1, 1].
Tensor count_rows(const Eager& e, const Eager::Targets& target, const LossOptions& o) {
  const Tensor rows = e.sum(e.not_ignored(target, o.ignore_index), Over::kTokens);
  return e.binary(Binary::kMax, rows, 1.0f);
}

// Loss of each row [T] from log probabilities [T, V] and lse [T].
Tensor row_losses(const Eager& e, const Tensor& logp, const Tensor& lse,
                  const Eager::Targets& target, const LossOptions& o) {
  Tensor loss = e.binary(Binary::kMul, e.gather(logp, target), o.label_smoothing - 1.0f);
  if (o.label_smoothing != 0.0f) {
    const float share = -o.label_smoothing / static_cast<float>(logp.shape[2]);
    loss = e.binary(Binary::kAdd, loss, e.sum(logp, Over::kFeatures, share));
  }
  if (o.z_loss != 0.0f) {
    const Tensor z = e.binary(Binary::kMul, e.binary(Binary::kMul, lse, lse), o.z_loss);
    loss = e.binary(Binary::kAdd, loss, z);
  }
  e.zero_ignored(loss, target, o.ignore_index);
  return loss;
}

void write_loss(const Eager& e, const Tensor& row_loss, const Eager::Targets& target,
                const LossOptions& o, const View<float, 1>& loss) {
  switch (o.reduction) {
    case Reduction::kNone:
      return e.unary(Unary::kCopy, row_loss, as_column(loss));
    case Reduction::kSum:
      return e.sum(row_loss, Over::kTokens, 1.0f, as_row(loss));
    case Reduction::kMean:
      return e.binary(Binary::kDiv, e.sum(row_loss, Over::kTokens), count_rows(e, target, o),
                      as_row(loss));
  }
}

// d loss / d row loss, [T]; 0 for an ignored row.
Tensor upstream(const Eager& e, const Eager::Targets& target, const View<const float, 1>& dloss,
                const LossOptions& o) {
  Tensor g = e.not_ignored(target, o.ignore_index);
  if (dloss) g = e.binary(Binary::kMul, g, as_column(dloss));
  if (o.reduction == Reduction::kMean) g = e.binary(Binary::kDiv, g, count_rows(e, target, o));
  return g;
}

// d loss / d log probabilities, a whole [T, V] as nll_loss's backward makes it.
Tensor logp_gradient(const Eager& e, const Tensor& logp, const Tensor& g,
                     const Eager::Targets& target, const LossOptions& o) {
  const Tensor d = e.zeros(DType::kF32, logp.shape);
  e.scatter(d, target, e.binary(Binary::kMul, g, o.label_smoothing - 1.0f));
  if (o.label_smoothing == 0.0f) return d;
  const float share = -o.label_smoothing / static_cast<float>(logp.shape[2]);
  return e.binary(Binary::kAdd, d, e.binary(Binary::kMul, g, share));
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
  const Tensor logits = as_matrix(a.logits), g = upstream(e, a.target, a.dloss, a);
  // Nothing is left to do after log_softmax: no copy, as in a framework.
  const bool direct =
      logits.type == DType::kF32 && a.logits.contiguous() && a.z_loss == 0.0f && a.softcap <= 0.0f;
  Tensor d = direct ? logits : e.empty(DType::kF32, logits.shape);
  e.log_softmax_backward(logp, logp_gradient(e, logp, g, a.target, a), d);
  if (a.z_loss != 0.0f) d = add_z_gradient(e, d, logp, lse, g, a);
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
  if (a.reduction != Reduction::kNone) e.fill_zero(as_row(a.loss));
  return true;
}

}  // namespace

template <class P>
Status forward(const Forward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (nothing_to_do(e, a)) return;
    const Tensor lse = as_column(a.lse);
    const Tensor x = softcap(e, as_matrix(a.logits), a).value;
    const Tensor logp = log_probabilities(e, x, a.target, a, lse);
    write_loss(e, row_losses(e, logp, lse, a.target, a), a.target, a, a.loss);
  });
}

template <class P>
Status backward(const Backward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (a.target.shape[0] == 0) return;
    const Tensor lse = as_column(a.lse);
    const Capped capped = softcap(e, as_matrix(a.logits), a);
    const Tensor logp = e.binary(Binary::kSub, e.cast(capped.value, DType::kF32), lse);
    write_gradient(e, a, capped, logp, lse);
  });
}

template <class P>
Status forward_backward(const ForwardBackward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    if (nothing_to_do(e, a)) return;
    const Tensor lse = as_column(a.lse);
    const Capped capped = softcap(e, as_matrix(a.logits), a);
    const Tensor logp = log_probabilities(e, capped.value, a.target, a, lse);
    write_loss(e, row_losses(e, logp, lse, a.target, a), a.target, a, a.loss);
    write_gradient(e, a, capped, logp, lse);
  });
}

template Status forward(const Forward<F32>&, Stream);
template Status forward(const Forward<BF16>&, Stream);
template Status forward(const Forward<F16>&, Stream);
template Status backward(const Backward<F32>&, Stream);
template Status backward(const Backward<BF16>&, Stream);
template Status backward(const Backward<F16>&, Stream);
template Status forward_backward(const ForwardBackward<F32>&, Stream);
template Status forward_backward(const ForwardBackward<BF16>&, Stream);
template Status forward_backward(const ForwardBackward<F16>&, Stream);

}  // namespace tigon::naive::cross_entropy
