// SPDX-License-Identifier: Apache-2.0
// cross_entropy   loss and gradient of softmax cross entropy over logits [T, V] in memory
//
// Three steps: count the rows that are not ignored (mean only), sweep over the rows (loss/rows.cu),
// add their losses in a fixed order. Nothing waits for the host.
//
// With f16 logits and reduction mean, gradients below 2^-25 (p < 2^-25 T) round to 0 when they are
// stored; a loss scale in dloss is applied before that rounding.
//
// Bytes: 2*T*V*elem for loss and gradient in place.
#include "kernels/cross_entropy/cross_entropy.h"

#include <climits>

#include "kernels/loss/scratch.h"
#include "kernels/signature/checks.h"
#include "kernels/signature/instantiate.h"

namespace tigon::cross_entropy {
namespace {

template <class Args>
concept ReadsUpstream = requires(const Args& a) {
  a.dloss.data;
};

template <class Args>
Status check(const Args& a) {
  const int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  const int64_t losses = a.reduction == Reduction::kNone ? rows : 1;
  if (rows < 0 || columns < 1) return invalid("cross_entropy: logits must be [T >= 0, V >= 1]");
  if (rows > INT_MAX) return unsupported("cross_entropy: there must be fewer than 2^31 rows");
  if (columns > INT_MAX) return unsupported("cross_entropy: the vocabulary must be below 2^31");
  if (!has_shape(a.logits, rows, columns) || (rows > 1 && a.logits.stride[0] < columns))
    return invalid("cross_entropy: rows of logits must be contiguous and must not overlap");
  if (!has_shape(a.target, rows) || !has_shape(a.lse, rows))
    return invalid("cross_entropy: target and lse must be [T]");
  if (is_missing(a.logits) || is_missing(a.target) || is_missing(a.lse))
    return invalid("cross_entropy: logits, target and lse must not be null");
  if (a.class_weight && !has_shape(a.class_weight, columns))
    return invalid("cross_entropy: class_weight must be [V]");
  if (a.normaliser && !has_shape(a.normaliser, 1))
    return invalid("cross_entropy: normaliser must be [1]");
  if (!(a.label_smoothing >= 0.0f && a.label_smoothing <= 1.0f))
    return invalid("cross_entropy: label_smoothing must be in [0, 1]");
  if constexpr (WritesLoss<Args>) {
    if (!has_shape(a.loss, losses) || is_missing(a.loss))
      return invalid("cross_entropy: loss must be [T] with reduction none, else [1]");
    for (const auto* result : {&a.z_part, &a.accuracy, &a.entropy})
      if (*result && !has_shape(*result, losses))
        return invalid(
            "cross_entropy: z_part, accuracy and entropy must be [T] with reduction none, else "
            "[1]");
  }
  if constexpr (ReadsUpstream<Args>) {
    if (a.dloss && !has_shape(a.dloss, losses))
      return invalid("cross_entropy: dloss must be [T] with reduction none, else [1]");
  }
  return {};
}

struct Layout {
  LossScratch loss;
  size_t bytes;
};

template <class Args>
Layout layout(const Args& a, void* data) {
  ScratchParts parts(data);
  const LossScratch loss = take_loss_scratch(a, a.logits.shape[0], &parts);
  return {loss, parts.bytes()};
}

template <class Args>
Status run(LossPass pass, const Args& a, Stream stream) {
  using Elem = typename Args::Elem;
  if (const Status s = check(a); !s.ok()) return s;
  const Layout l = layout(a, a.scratch.data);
  if (a.scratch.bytes < l.bytes || (l.bytes > 0 && a.scratch.data == nullptr))
    return invalid("cross_entropy: scratch is smaller than workspace()");
  LossRows<Elem> rows{
      .pass = pass,
      .options = a,
      .rows = a.logits.shape[0],
      .classes = a.logits.shape[1],
      .columns = a.logits.shape[1],
      .logits =
          const_cast<Elem*>(a.logits.data),  // forward's are const, and it does not write them
      .stride = a.logits.stride[0],
      .target = a.target.data,
      .class_weight = a.class_weight.data,
      .totals = l.loss.totals,
      .lse = const_cast<float*>(a.lse.data),  // likewise backward's lse
  };
  if constexpr (ReadsUpstream<Args>) rows.dloss = a.dloss.data;
  if constexpr (WritesLoss<Args>) write_results_to(a, l.loss, 0, &rows);
  if (const Status s = count_rows(a, rows.classes, l.loss, stream); !s.ok()) return s;
  rows.after_count = l.loss.totals != nullptr;
  if (const Status s = loss_rows(rows, stream); !s.ok()) return s;
  if constexpr (WritesLoss<Args>) {
    if (a.reduction != Reduction::kNone) return reduce_results(a, rows, stream);
  }
  return {};
}

}  // namespace

template <class P>
Status forward(const Forward<P>& a, Stream stream) {
  return run(LossPass::kForward, a, stream);
}
template <class P>
Status backward(const Backward<P>& a, Stream stream) {
  return run(LossPass::kBackward, a, stream);
}
template <class P>
Status forward_backward(const ForwardBackward<P>& a, Stream stream) {
  return run(LossPass::kForwardBackward, a, stream);
}

template <class P>
size_t workspace(const Forward<P>& a) {
  return layout(a, nullptr).bytes;
}
template <class P>
size_t workspace(const Backward<P>& a) {
  return layout(a, nullptr).bytes;
}
template <class P>
size_t workspace(const ForwardBackward<P>& a) {
  return layout(a, nullptr).bytes;
}

TIGON_INSTANTIATE(forward, Forward);
TIGON_INSTANTIATE(backward, Backward);
TIGON_INSTANTIATE(forward_backward, ForwardBackward);
TIGON_INSTANTIATE_WORKSPACE(Forward);
TIGON_INSTANTIATE_WORKSPACE(Backward);
TIGON_INSTANTIATE_WORKSPACE(ForwardBackward);

}  // namespace tigon::cross_entropy
