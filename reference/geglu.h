// SPDX-License-Identifier: Apache-2.0
// Oracle of geglu in plain Eigen, and S: the same formulas with every term replaced by its absolute
// value.
#pragma once
#include <cmath>

#include "kernels/geglu/geglu.h"
#include "reference/gated.h"

namespace tigon::reference::geglu {

using tigon::geglu::Approximate;
using tigon::geglu::Backward;
using tigon::geglu::Forward;

// Phi(a), Phi'(a), and how many roundings of its own size an error of one rounding of a becomes in
// them.
template <class S>
struct Normal {
  S cdf, derivative, condition;
};

template <class S>
Normal<S> normal(const S& a, Approximate approximate) {
  using std::abs;
  using std::erfc;
  using std::exp;
  using std::sqrt;
  // Beyond 1000 nothing changes any more but for overflows.
  const S x = a > S(1000) ? S(1000) : a < S(-1000) ? S(-1000) : a;
  if (approximate == Approximate::kNone) {
    const S density = exp(S(-0.5) * x * x) / S(sqrt(2 * 3.14159265358979323846));
    return {S(0.5) * erfc(S(-std::sqrt(0.5)) * x), density, x * x};
  }
  // (1 + tanh(u)) / 2 = sigmoid(2 u).
  const S slope = S(2 * std::sqrt(2 / 3.14159265358979323846));
  const S z = slope * x * (S(1) + S(0.044715) * x * x), e = exp(-abs(z));
  const S larger = S(1) / (S(1) + e), smaller = e * larger;
  return {z < S(0) ? smaller : larger, larger * smaller * slope * (S(1) + S(3 * 0.044715) * x * x),
          abs(z)};
}

// gelu'(a) = Phi(a) + a Phi'(a); the product is 0 in the limit of an infinite a.
template <class S>
S slope_of(const S& a, const Normal<S>& n) {
  return n.derivative == S(0) ? n.cdf : S(n.cdf + a * n.derivative);
}

// With x = g a.
template <class P>
void forward(const Forward<P>& args) {
  using S = typename P::Elem;
  const auto [a, b] = halves(args.a, args.b, args.layout);  // [T, F]
  const Rows<S> x = S(args.gate_multiplier) * a;
  const auto gelu = [&](const S& v) { return S(v * normal(v, args.approximate).cdf); };
  array(args.y) = S(args.down_multiplier) * x.unaryExpr(gelu) * b;
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
  const auto gelu = [&](const S& v) { return S(v * normal(v, args.approximate).cdf); };
  const auto slope = [&](const S& v) { return slope_of(v, normal(v, args.approximate)); };
  write_gradients<P, S>(args, g * dy * b * x.unaryExpr(slope), dy * x.unaryExpr(gelu));
}

// Phi becomes 0 in fp32 below 2^-126 or so although it is not; through the budget's 40 * 2^-24 that
// is 2^-107.3; 32 times as much is allowed, because the chain of the baseline multiplies by z.
inline constexpr double kUnderflow = 0x1p-102;

template <class S>
S cdf_scale(const S& a, Approximate approximate) {
  const Normal<S> n = normal(a, approximate);
  return n.cdf * (S(1) + n.condition) + S(kUnderflow);
}

template <class P>
void forward_scale(const Forward<P>& args) {
  using S = typename P::Elem;
  const auto [a, b] = halves(args.a, args.b, args.layout);
  const Rows<S> x = S(args.gate_multiplier) * a;
  const auto scale = [&](const S& v) { return cdf_scale(v, args.approximate); };
  array(args.y) = S(std::abs(args.down_multiplier)) * x.abs() * x.unaryExpr(scale) * b.abs();
}

template <class P>
void backward_scale(const Backward<P>& args) {
  using std::abs;
  using S = typename P::Elem;
  const auto [a, b] = halves(args.a, args.b, args.layout);
  const S g(args.gate_multiplier), size(std::abs(args.gate_multiplier));
  const Rows<S> dy = S(std::abs(args.down_multiplier)) * array(args.dy).abs(), x = g * a;
  const auto cdf = [&](const S& v) { return cdf_scale(v, args.approximate); };
  const auto slope = [&](const S& v) {
    const Normal<S> n = normal(v, args.approximate);
    const S rest = n.derivative * (S(1) + n.condition);
    return S(cdf_scale(v, args.approximate) + (rest == S(0) ? S(0) : S(abs(v) * rest)));
  };
  write_gradients<P, S>(args, size * dy * b.abs() * x.unaryExpr(slope),
                        dy * x.abs() * x.unaryExpr(cdf));
}

}  // namespace tigon::reference::geglu
