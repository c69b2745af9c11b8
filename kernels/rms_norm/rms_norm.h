// SPDX-License-Identifier: Apache-2.0
// rms_norm: y = x * rstd * (offset + w), rstd = 1 / sqrt(mean_H(x^2) + eps)   (Zhang and Sennrich
// 2019)
#pragma once
#include "kernels/norm/casting.h"
#include "kernels/signature/signature.h"

namespace tigon::rms_norm {

inline constexpr char kFormula[] =
    "y = x * rstd * (offset + w), rstd = 1 / sqrt(mean_H(x^2) + eps)";

inline constexpr Axis T{"T", "tokens"}, H{"H", "hidden size"};

using norm::Casting;

template <class P>
struct Forward {
  static constexpr char kName[] = "rms_norm.forward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x;
  View<const Elem, 1> w;  // left out: y = x * rstd
  View<Elem, 2> y;
  View<Accum, 1> rstd;  // for backward
  float eps = 1e-6f;
  float offset = 0.0f;
  Casting casting = Casting::kLlama;

  static constexpr void fields(auto&& f) {
    f(strided(in(&Forward::x, "x", {T, H})));
    f(optional(in(&Forward::w, "w", {H})));
    f(strided(out(&Forward::y, "y", {T, H})));
    f(saved(&Forward::rstd, "rstd", {T}));
    f(option(&Forward::eps, "eps"));
    f(option(&Forward::offset, "offset"));
    f(option(&Forward::casting, "casting", {"llama", "gemma", "none"}));
  }
};

// dx = rstd * (m - x * rstd^2 * mean_H(m * x)), m = dy * (offset + w);  dw = sum_T dy * x * rstd.
// Casting changes the forward's rounding only: the gradient is that of the unrounded formula.
template <class P>
struct Backward {
  static constexpr char kName[] = "rms_norm.backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> dy, x;
  View<const Elem, 1> w;      // left out: no weight
  View<const Accum, 1> rstd;  // from forward
  View<Elem, 2> dx;
  View<Accum, 1> dw;  // left out: not computed
  Scratch scratch;
  float offset = 0.0f;

  static constexpr void fields(auto&& f) {
    f(strided(gradient("y", in(&Backward::dy, "dy", {T, H}))));
    f(strided(in(&Backward::x, "x", {T, H})));
    f(optional(in(&Backward::w, "w", {H})));
    f(in(&Backward::rstd, "rstd", {T}));
    f(may_alias({"dy"}, strided(gradient("x", out(&Backward::dx, "dx", {T, H})))));
    f(optional(gradient("w", out(&Backward::dw, "dw", {H}))));
    f(option(&Backward::offset, "offset"));
  }
};

template <class P>
using Passes = std::tuple<Forward<P>, Backward<P>>;

// Both enqueue on `stream` and wait for nothing.
// Shapes: as in fields(), T >= 0, H >= 1. Columns lie side by side; rows of [T, H] may be apart.
// Types: Elem is f32, bf16 or f16; rstd and dw are float.
// Alignment: any. Fast where w and all rows start at multiples of 16 bytes.
// Memory: no tensor overlaps another, but as may_alias() in fields() says.
// Errors: kInvalidArgument for a shape, a stride, a missing tensor or too little scratch;
// kUnsupported for T >= 2^31; kLaunchFailed for what the device says.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

// Bytes of scratch that backward needs: partial sums of dw, one row per block.
template <class P>
size_t workspace(const Backward<P>& args);

}  // namespace tigon::rms_norm
