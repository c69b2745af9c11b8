// SPDX-License-Identifier: Apache-2.0
// layer_norm: y = (x - mean) * rstd * w + b, rstd = 1 / sqrt(var_H(x) + eps)   (Ba et al. 2016)
#pragma once
#include "kernels/signature/signature.h"

namespace tigon::layer_norm {

inline constexpr char kFormula[] = "y = (x - mean) * rstd * w + b, rstd = 1 / sqrt(var_H(x) + eps)";

inline constexpr Axis T{"T", "tokens"}, H{"H", "hidden size"};

template <class P>
struct Forward {
  static constexpr char kName[] = "layer_norm.forward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x;
  View<const Elem, 1> w, b;  // either may be left out: ones, zeros
  View<Elem, 2> y;
  View<Accum, 1> mean, rstd;  // for backward
  float eps = 1e-5f;

  static constexpr void fields(auto&& f) {
    f(strided(in(&Forward::x, "x", {T, H})));
    f(optional(in(&Forward::w, "w", {H})));
    f(optional(in(&Forward::b, "b", {H})));
    f(strided(out(&Forward::y, "y", {T, H})));
    f(saved(&Forward::mean, "mean", {T}));
    f(saved(&Forward::rstd, "rstd", {T}));
    f(option(&Forward::eps, "eps"));
  }
};

// dx = rstd * (m - mean_H(m) - x_hat * mean_H(m * x_hat)), m = dy * w, x_hat = (x - mean) * rstd;
// dw = sum_T dy * x_hat, db = sum_T dy.
template <class P>
struct Backward {
  static constexpr char kName[] = "layer_norm.backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> dy, x;
  View<const Elem, 1> w;            // left out: no weight, and no dw
  View<const Accum, 1> mean, rstd;  // from forward
  View<Elem, 2> dx;
  View<Accum, 1> dw, db;  // either may be left out: not computed
  Scratch scratch;

  static constexpr void fields(auto&& f) {
    f(strided(gradient("y", in(&Backward::dy, "dy", {T, H}))));
    f(strided(in(&Backward::x, "x", {T, H})));
    f(optional(in(&Backward::w, "w", {H})));
    f(in(&Backward::mean, "mean", {T}));
    f(in(&Backward::rstd, "rstd", {T}));
    f(may_alias({"dy"}, strided(gradient("x", out(&Backward::dx, "dx", {T, H})))));
    f(optional(gradient("w", out(&Backward::dw, "dw", {H}))));
    f(optional(gradient("b", out(&Backward::db, "db", {H}))));
  }
};

template <class P>
using Passes = std::tuple<Forward<P>, Backward<P>>;

// Both enqueue on `stream` and wait for nothing.
// Shapes: as in fields(), T >= 0, H >= 1. Columns lie side by side; rows of [T, H] may be apart.
// Types: Elem is f32, bf16 or f16; mean, rstd, dw and db are float.
// Alignment: any. Fast where w, b and all rows start at multiples of 16 bytes.
// Memory: no tensor overlaps another, but as may_alias() in fields() says.
// Errors: kInvalidArgument for a shape, a stride, a missing tensor or too little scratch;
// kUnsupported for T >= 2^31; kLaunchFailed for what the device says.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

// Bytes of scratch that backward needs: partial sums of dw and db, one row of each per block.
template <class P>
size_t workspace(const Backward<P>& args);

}  // namespace tigon::layer_norm
