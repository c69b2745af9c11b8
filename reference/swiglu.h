// Oracle of swiglu in plain Eigen, and S: the same formulas with every term replaced by its
// absolute value.
#pragma once
#include "kernels/swiglu/swiglu.h"
#include "reference/eigen_view.h"

namespace tigon::reference::swiglu {

using tigon::swiglu::Backward;
using tigon::swiglu::Forward;

template <class S>
Rows<S> sigmoid(const Rows<S>& a) {
  return S(1) / (S(1) + (-a).exp());
}

template <class P>
void forward(const Forward<P>& args) {
  using S = typename P::Elem;
  const Rows<S> a = array(args.a), b = array(args.b);  // [T, F]
  array(args.y) = a * sigmoid(a) * b;
}

template <class P>
void backward(const Backward<P>& args) {
  using S = typename P::Elem;
  const Rows<S> dy = array(args.dy), a = array(args.a), b = array(args.b);  // [T, F]
  const Rows<S> s = sigmoid(a), silu = a * s;
  array(args.da) = dy * b * (s + silu * (S(1) - s));
  array(args.db) = dy * silu;
}

// Where fp32 exp overflows the sigmoid becomes 0 although it is up to 2^-126. Seen through the
// budget's 40 * 2^-24 that is 2^-107.3; twice as much is allowed.
inline constexpr double kUnderflow = 0x1p-106;

// Sigmoid with the error of its argument: exp(-a) is off by |a| roundings.
template <class S>
Rows<S> sigmoid_scale(const Rows<S>& a) {
  return sigmoid(a) * (S(1) + a.abs()) + S(kUnderflow);
}

template <class P>
void forward_scale(const Forward<P>& args) {
  using S = typename P::Elem;
  const Rows<S> a = array(args.a), b = array(args.b);
  array(args.y) = a.abs() * sigmoid_scale(a) * b.abs();
}

template <class P>
void backward_scale(const Backward<P>& args) {
  using S = typename P::Elem;
  const Rows<S> dy = array(args.dy).abs(), a = array(args.a), b = array(args.b).abs();
  const Rows<S> s = sigmoid(a), e = sigmoid_scale(a);
  array(args.da) = dy * b * e * (S(1) + a.abs() * (S(1) - s));
  array(args.db) = dy * a.abs() * e;
}

}  // namespace tigon::reference::swiglu
