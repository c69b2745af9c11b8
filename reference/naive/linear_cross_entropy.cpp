// SPDX-License-Identifier: Apache-2.0
// logits = x w^T + bias are whole and rounded to the storage type, and so is their gradient.
#include "reference/naive/linear_cross_entropy.h"

#include "reference/naive/cross_entropy.h"
#include "reference/naive/eager.h"

namespace tigon::naive {
namespace {

// x w^T + bias, [T, V].
template <class Args>
Tensor logits_of(const Eager& e, const Args& a) {
  const Tensor x = as_matrix(a.x), w = as_matrix(a.w);
  const Tensor logits = e.empty(x.type, {1, x.shape[1], w.shape[1]});
  e.matmul(x, false, w, true, logits);
  return a.bias ? e.binary(Binary::kAdd, logits, as_row(a.bias)) : logits;
}

// Without a primitive that lists rows, a promise about their number cannot be checked.
template <class Args>
void refuse_row_bound(const Args& a) {
  if (a.max_valid_rows >= 0) fail(Status::kUnsupported, "naive: no primitive lists rows");
}

// A cross_entropy pass over the logits with this op's options and losses.
template <class Loss, class Args>
Loss loss_pass(const Args& a, const Tensor& logits) {
  Loss c;
  static_cast<LossOptions&>(c) = a;
  using Elem = typename decltype(c.logits)::Elem;  // const in forward
  c.logits = view(static_cast<Elem*>(logits.data), logits.shape[1], logits.shape[2]);
  c.target = a.target;
  c.loss = a.loss;
  c.lse = a.lse;
  c.class_weight = a.class_weight;
  c.normaliser = a.normaliser;
  c.z_part = a.z_part;
  c.accuracy = a.accuracy;
  c.entropy = a.entropy;
  return c;
}

// dw in the storage type, as autograd gives it, then cast or added.
template <class Args>
void write_dw(const Eager& e, const Args& a, const Tensor& dlogits) {
  const auto product = [&](const Tensor& to) {
    e.matmul(dlogits, true, as_matrix(a.x), false, to);
    return to;
  };
  if (a.dw) product(as_matrix(a.dw));
  if (!a.dw_fp32 && !a.dw_accum) return;
  const Tensor dw = product(e.empty(dlogits.type, {1, a.w.shape[0], a.w.shape[1]}));
  if (a.dw_fp32) e.unary(Unary::kCopy, dw, as_matrix(a.dw_fp32));
  if (a.dw_accum) e.binary(Binary::kAdd, as_matrix(a.dw_accum), dw, as_matrix(a.dw_accum));
}

void write_dbias(const Eager& e, const Tensor& dlogits, const Tensor& dbias) {
  if (dlogits.size() == 0) return e.fill_zero(dbias);
  e.unary(Unary::kCopy, e.sum(e.cast(dlogits, DType::kF32), Over::kTokens), dbias);
}

void check(const Status& status) {
  if (!status.ok()) fail(status.code, status.reason);
}

}  // namespace

template <class P>
Status forward(const linear_cross_entropy::Forward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    refuse_row_bound(a);
    const Tensor logits = logits_of(e, a);
    check(naive::forward(loss_pass<cross_entropy::Forward<P>>(a, logits), stream));
  });
}

template <class P>
Status forward_backward(const linear_cross_entropy::ForwardBackward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    refuse_row_bound(a);
    const Tensor logits = logits_of(e, a);
    auto loss = loss_pass<cross_entropy::ForwardBackward<P>>(a, logits);
    loss.dloss = a.dloss;
    check(naive::forward_backward(loss, stream));  // logits are now their gradient
    if (a.dx) e.matmul(logits, false, as_matrix(a.w), false, as_matrix(a.dx));
    write_dw(e, a, logits);
    if (a.dbias) write_dbias(e, logits, as_row(a.dbias));
  });
}

template Status forward(const linear_cross_entropy::Forward<F32>&, Stream);
template Status forward(const linear_cross_entropy::Forward<BF16>&, Stream);
template Status forward(const linear_cross_entropy::Forward<F16>&, Stream);
template Status forward_backward(const linear_cross_entropy::ForwardBackward<F32>&, Stream);
template Status forward_backward(const linear_cross_entropy::ForwardBackward<BF16>&, Stream);
template Status forward_backward(const linear_cross_entropy::ForwardBackward<F16>&, Stream);

}  // namespace tigon::naive
