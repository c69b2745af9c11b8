// SPDX-License-Identifier: Apache-2.0
// geglu: y = d gelu(g a) b, gelu(x) = x Phi(x), with g and d the multipliers   (Shazeer 2020;
// Hendrycks and Gimpel 2016)
#pragma once
#include "kernels/gated/options.h"

namespace tigon::geglu {

inline constexpr char kFormula[] = "y = d * gelu(g * a) * b, gelu(x) = x * Phi(x)";

inline constexpr Axis T{"T", "tokens"}, F{"F", "intermediate size"};

// What stands for the normal distribution Phi: (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))) / 2, or
// Phi itself through erf.
enum class Approximate : int { kTanh, kNone };

template <class P>
struct Forward : GatedOptions {
  static constexpr char kName[] = "geglu.forward";
  using Elem = typename P::Elem;
  View<const Elem, 2> a, b;  // gate and up projections (GateLayout)
  View<Elem, 2> y;
  Approximate approximate = Approximate::kTanh;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Forward::a, "a", {T, gate_columns(F)})));
    f(strided(in(&Forward::b, "b", {T, up_columns(F)})));
    f(strided(out(&Forward::y, "y", {T, F})));
    f(option(&Forward::approximate, "approximate", {"tanh", "none"}));
    gated_options(f);
  }
};

// da = d dy b g gelu'(g a), db = d dy gelu(g a); nothing is saved, both are recomputed.
template <class P>
struct Backward : GatedOptions {
  static constexpr char kName[] = "geglu.backward";
  using Elem = typename P::Elem;
  View<const Elem, 2> dy, a, b;
  View<Elem, 2> da, db;
  Approximate approximate = Approximate::kTanh;
  static constexpr void fields(auto&& f) {
    f(strided(gradient("y", in(&Backward::dy, "dy", {T, F}))));
    f(strided(in(&Backward::a, "a", {T, gate_columns(F)})));
    f(strided(in(&Backward::b, "b", {T, up_columns(F)})));
    f(may_alias({"a"}, strided(gradient("a", out(&Backward::da, "da", {T, gate_columns(F)})))));
    f(may_alias({"b"}, strided(gradient("b", out(&Backward::db, "db", {T, up_columns(F)})))));
    f(option(&Backward::approximate, "approximate", {"tanh", "none"}));
    gated_options(f);
  }
};

template <class P>
using Passes = std::tuple<Forward<P>, Backward<P>>;

// Both enqueue on `stream` and wait for nothing.
// Shapes: as in fields(), T >= 0, F >= 1. Columns lie side by side; rows may be apart.
// Types: f32, bf16 or f16; arithmetic in float, rounded once.
// Alignment: any. Fast where all rows, or both halves of packed ones, start at multiples of 16
// bytes.
// Memory: no tensor overlaps another, but as may_alias() in fields() says.
// Errors: kInvalidArgument for a shape, a stride or a missing tensor; kLaunchFailed for what the
// device says.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

}  // namespace tigon::geglu
