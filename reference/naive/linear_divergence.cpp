// SPDX-License-Identifier: Apache-2.0
// The logits of both layers are whole and rounded to the storage type, and so is the gradient.
#include "reference/naive/linear_divergence.h"

#include "reference/naive/divergence.h"
#include "reference/naive/linear_head.h"

namespace tigon::naive {
namespace {

// The teacher's matrices under the names of a layer.
template <class Elem>
struct Layer {
  View<const Elem, 2> x, w;
  View<const Elem, 1> bias;
};

// What both passes of divergence have.
template <class Call, class Args>
Call on_logits(const Args& a, const Tensor& student, const Tensor& teacher) {
  using Elem = typename Args::Elem;
  Call c;
  static_cast<divergence::Options&>(c) = a;
  c.logits = as_view<const Elem>(student);
  c.teacher = as_view<const Elem>(teacher);
  c.target = a.target;
  c.lse = a.lse;
  c.teacher_lse = a.teacher_lse;
  c.slope = a.slope;
  return c;
}

template <class Args>
Tensor teacher_logits(const Eager& e, const Args& a) {
  return logits_of(e, Layer<typename Args::Elem>{a.teacher_x, a.teacher_w, a.teacher_bias});
}

}  // namespace

template <class P>
Status forward(const linear_divergence::Forward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    refuse_row_bound(a);
    const Tensor student = logits_of(e, a), teacher = teacher_logits(e, a);
    auto f = on_logits<divergence::Forward<P>>(a, student, teacher);
    f.loss = a.loss;
    check(naive::forward(f, stream));
  });
}

template <class P>
Status backward(const linear_divergence::Backward<P>& a, Stream stream) {
  return eagerly(stream, [&](const Eager& e) {
    refuse_row_bound(a);
    const Tensor student = logits_of(e, a), teacher = teacher_logits(e, a);
    const Tensor dlogits = e.empty(student.type, student.shape);
    auto b = on_logits<divergence::Backward<P>>(a, student, teacher);
    b.dloss = a.dloss;
    b.dlogits = as_view<typename P::Elem>(dlogits);
    check(naive::backward(b, stream));
    write_gradients(e, a, dlogits);
  });
}

template Status forward(const linear_divergence::Forward<F32>&, Stream);
template Status forward(const linear_divergence::Forward<BF16>&, Stream);
template Status forward(const linear_divergence::Forward<F16>&, Stream);
template Status backward(const linear_divergence::Backward<F32>&, Stream);
template Status backward(const linear_divergence::Backward<BF16>&, Stream);
template Status backward(const linear_divergence::Backward<F16>&, Stream);

}  // namespace tigon::naive
