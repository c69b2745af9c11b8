// SPDX-License-Identifier: Apache-2.0
// logits = x w^T + bias are whole and rounded to the storage type, and so is their gradient.
#include "reference/naive/linear_cross_entropy.h"

#include "reference/naive/cross_entropy.h"
#include "reference/naive/linear_head.h"

namespace tigon::naive {
namespace {

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
    write_gradients(e, a, logits);
  });
}

template Status forward(const linear_cross_entropy::Forward<F32>&, Stream);
template Status forward(const linear_cross_entropy::Forward<BF16>&, Stream);
template Status forward(const linear_cross_entropy::Forward<F16>&, Stream);
template Status forward_backward(const linear_cross_entropy::ForwardBackward<F32>&, Stream);
template Status forward_backward(const linear_cross_entropy::ForwardBackward<BF16>&, Stream);
template Status forward_backward(const linear_cross_entropy::ForwardBackward<F16>&, Stream);

}  // namespace tigon::naive
