// SPDX-License-Identifier: Apache-2.0
// add_rms_norm: h = x + residual, y = h * rstd * (offset + w), rstd = 1 / sqrt(mean_H(h^2) + eps)
// (Zhang and Sennrich 2019; the residual stream of a transformer before its norm)
#pragma once
#include "kernels/rms_norm/rms_norm.h"

namespace tigon::add_rms_norm {

inline constexpr char kFormula[] =
    "h = x + residual, y = h * rstd * (offset + w), rstd = 1 / sqrt(mean_H(h^2) + eps)"
    " of the rounded h";

using norm::Casting;
using rms_norm::H;
using rms_norm::T;

// The sum is rounded to the element type once and is the new residual stream; y and rstd are those
// of the rounded sum, as if rms_norm read it from memory.
template <class P>
struct Forward {
  static constexpr char kName[] = "add_rms_norm.forward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x, residual;
  View<const Elem, 1> w;  // left out: y = h * rstd
  View<Elem, 2> h;
  View<Elem, 2> y;
  View<Accum, 1> rstd;  // for backward, as h is
  float eps = 1e-6f;
  float offset = 0.0f;
  Casting casting = Casting::kLlama;

  static constexpr void fields(auto&& f) {
    f(strided(in(&Forward::x, "x", {T, H})));
    f(same_gradient("x", strided(in(&Forward::residual, "residual", {T, H}))));
    f(optional(in(&Forward::w, "w", {H})));
    f(may_alias({"residual", "x"}, strided(out(&Forward::h, "h", {T, H}))));
    f(may_alias({"x"}, strided(out(&Forward::y, "y", {T, H}))));
    f(saved(&Forward::rstd, "rstd", {T}));
    f(option(&Forward::eps, "eps"));
    f(option(&Forward::offset, "offset"));
    f(option(&Forward::casting, "casting", {"llama", "gemma", "none"}));
  }
};

// dx = dh + rstd * (m - h * rstd^2 * mean_H(m * h)), m = dy * (offset + w);
// dw = sum_T dy * h * rstd. dx is the gradient of x and of the old residual stream alike, dh that
// of the new one from everything behind this norm; their sum is rounded once.
template <class P>
struct Backward {
  static constexpr char kName[] = "add_rms_norm.backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> dy;
  View<const Elem, 2> dh;     // left out: nobody else reads h
  View<const Elem, 2> h;      // from forward
  View<const Elem, 1> w;      // left out: no weight
  View<const Accum, 1> rstd;  // from forward
  View<Elem, 2> dx;
  View<Accum, 1> dw;  // left out: not computed
  Scratch scratch;
  float offset = 0.0f;

  static constexpr void fields(auto&& f) {
    f(strided(gradient("y", in(&Backward::dy, "dy", {T, H}))));
    f(optional(strided(gradient("h", in(&Backward::dh, "dh", {T, H})))));
    f(strided(in(&Backward::h, "h", {T, H})));
    f(optional(in(&Backward::w, "w", {H})));
    f(in(&Backward::rstd, "rstd", {T}));
    f(may_alias({"dh", "dy"}, strided(gradient("x", out(&Backward::dx, "dx", {T, H})))));
    f(optional(gradient("w", out(&Backward::dw, "dw", {H}))));
    f(option(&Backward::offset, "offset"));
  }
};

// The norm of h within a call.
template <class P>
TIGON_HOST_DEVICE rms_norm::Forward<P> norm_of(const Forward<P>& a) {
  rms_norm::Forward<P> norm;
  norm.x = {a.h.data, {a.h.shape[0], a.h.shape[1]}, {a.h.stride[0], a.h.stride[1]}};
  norm.w = a.w;
  norm.y = a.y;
  norm.rstd = a.rstd;
  norm.eps = a.eps;
  norm.offset = a.offset;
  norm.casting = a.casting;
  return norm;
}
template <class P>
TIGON_HOST_DEVICE rms_norm::Backward<P> norm_of(const Backward<P>& a) {
  return {a.dy, a.h, a.w, a.rstd, a.dx, a.dw, a.scratch, a.offset};
}

template <class P>
using Passes = std::tuple<Forward<P>, Backward<P>>;

// Shapes, types, alignment, memory and errors as in rms_norm.h.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

// Bytes of scratch that backward needs: partial sums of dw, one row per block.
template <class P>
size_t workspace(const Backward<P>& args);

}  // namespace tigon::add_rms_norm
