// SPDX-License-Identifier: Apache-2.0
// Oracle of swiglu in plain Eigen, and S: the same formulas with every term replaced by its
// absolute value.
#pragma once
#include <cmath>

#include "kernels/swiglu/swiglu.h"
#include "reference/gated.h"

namespace tigon::reference::swiglu {

using tigon::swiglu::Backward;
using tigon::swiglu::Forward;

template <class S>
Rows<S> sigmoid(const Rows<S>& a) {
  return S(1) / (S(1) + (-a).exp());
}

// With x = g a.
template <class P>
void forward(const Forward<P>& args) {
  using S = typename P::Elem;
  const auto [a, b] = halves(args.a, args.b, args.layout);  // [T, F]
  const Rows<S> x = S(args.gate_multiplier) * a;
  array(args.y) = S(args.down_multiplier) * x * sigmoid(x) * b;
}

// Writes da and db.
template <class P, class S>
void write_gradients(const Backward<P>& args, const Rows<S>& da, const Rows<S>& db) {
  with_halves(args.da, args.db, args.layout, [&](auto& gate, auto& up) {
    gate = da;
    up = db;
  });
}

template <class P>
void backward(const Backward<P>& args) {
  using S = typename P::Elem;
  const auto [a, b] = halves(args.a, args.b, args.layout);  // [T, F]
  const S g(args.gate_multiplier);
  const Rows<S> dy = S(args.down_multiplier) * array(args.dy), x = g * a;
  const Rows<S> s = sigmoid(x), silu = x * s;
  write_gradients<P, S>(args, g * dy * b * (s + silu * (S(1) - s)), dy * silu);
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
  const auto [a, b] = halves(args.a, args.b, args.layout);
  const Rows<S> x = S(args.gate_multiplier) * a;
  array(args.y) = S(std::abs(args.down_multiplier)) * x.abs() * sigmoid_scale(x) * b.abs();
}

template <class P>
void backward_scale(const Backward<P>& args) {
  using S = typename P::Elem;
  const auto [a, b] = halves(args.a, args.b, args.layout);
  const S g(args.gate_multiplier), size(std::abs(args.gate_multiplier));
  const Rows<S> dy = S(std::abs(args.down_multiplier)) * array(args.dy).abs(), x = g * a;
  const Rows<S> s = sigmoid(x), e = sigmoid_scale(x);
  write_gradients<P, S>(args, size * dy * b.abs() * e * (S(1) + x.abs() * (S(1) - s)),
                        dy * x.abs() * e);
}

}  // namespace tigon::reference::swiglu
