// Oracle of rope in plain Eigen, and S: the same formulas with every term replaced by its absolute
// value.
#pragma once
#include "kernels/rope/rope.h"
#include "reference/eigen_view.h"

namespace tigon::reference::rope {

using tigon::rope::Backward;
using tigon::rope::Forward;

// Turns every head of x [T, N, D] in place by the angles with these cosines and sines [T, D/2].
template <class S>
void turn(const View<S, 3>& x, const Rows<S>& cos, const Rows<S>& sin) {
  const int64_t half = x.shape[2] / 2;
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    auto heads = slice(x, t);  // [N, D]
    for (int64_t n = 0; n < heads.rows(); ++n) {
      const Row<S> x1 = heads.row(n).head(half), x2 = heads.row(n).tail(half);
      heads.row(n).head(half) = x1 * cos.row(t) - x2 * sin.row(t);
      heads.row(n).tail(half) = x2 * cos.row(t) + x1 * sin.row(t);
    }
  }
}

template <class P>
void forward(const Forward<P>& a) {
  turn<typename P::Elem>(a.q, array(a.cos), array(a.sin));
  turn<typename P::Elem>(a.k, array(a.cos), array(a.sin));
}

template <class P>
void backward(const Backward<P>& a) {
  turn<typename P::Elem>(a.dq, array(a.cos), -array(a.sin));
  turn<typename P::Elem>(a.dk, array(a.cos), -array(a.sin));
}

// |x1 cos| + |x2 sin| and |x2 cos| + |x1 sin|, in place.
template <class S>
void turn_scale(const View<S, 3>& x, const Rows<S>& cos, const Rows<S>& sin) {
  const int64_t half = x.shape[2] / 2;
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    auto heads = slice(x, t);
    for (int64_t n = 0; n < heads.rows(); ++n) {
      const Row<S> x1 = heads.row(n).head(half).abs(), x2 = heads.row(n).tail(half).abs();
      heads.row(n).head(half) = x1 * cos.row(t).abs() + x2 * sin.row(t).abs();
      heads.row(n).tail(half) = x2 * cos.row(t).abs() + x1 * sin.row(t).abs();
    }
  }
}

template <class P>
void forward_scale(const Forward<P>& a) {
  turn_scale<typename P::Elem>(a.q, array(a.cos), array(a.sin));
  turn_scale<typename P::Elem>(a.k, array(a.cos), array(a.sin));
}

template <class P>
void backward_scale(const Backward<P>& a) {
  turn_scale<typename P::Elem>(a.dq, array(a.cos), array(a.sin));
  turn_scale<typename P::Elem>(a.dk, array(a.cos), array(a.sin));
}

}  // namespace tigon::reference::rope
