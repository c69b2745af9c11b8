// SPDX-License-Identifier: Apache-2.0
// softmax: y = exp(x) / sum_V exp(x) of each row. The maximum is subtracted first, and the sum of a
// long row is rescaled as the maximum grows (Milakov and Gimelshein 2018).
#pragma once
#include "kernels/signature/signature.h"

namespace tigon::softmax {

inline constexpr char kFormula[] = "y = exp(x - max_V x) / sum_V exp(x - max_V x)";

inline constexpr Axis T{"T", "rows"}, V{"V", "columns"};

// A row with a NaN, with +inf, or with nothing but -inf is NaN.
template <class P>
struct Forward {
  static constexpr char kName[] = "softmax.forward";
  using Elem = typename P::Elem;
  View<const Elem, 2> x;
  View<Elem, 2> y;

  static constexpr void fields(auto&& f) {
    f(strided(in(&Forward::x, "x", {T, V})));
    f(may_alias({"x"}, strided(out(&Forward::y, "y", {T, V}))));
  }
};

// dx = y * (dy - sum_V y * dy).
template <class P>
struct Backward {
  static constexpr char kName[] = "softmax.backward";
  using Elem = typename P::Elem;
  View<const Elem, 2> dy;
  View<const Elem, 2> y;  // from forward
  View<Elem, 2> dx;

  static constexpr void fields(auto&& f) {
    f(strided(gradient("y", in(&Backward::dy, "dy", {T, V}))));
    f(strided(in(&Backward::y, "y", {T, V})));
    f(may_alias({"dy", "y"}, strided(gradient("x", out(&Backward::dx, "dx", {T, V})))));
  }
};

template <class P>
using Passes = std::tuple<Forward<P>, Backward<P>>;

// Both enqueue on `stream` and wait for nothing.
// Shapes: [T, V], 0 <= T < 2^31, 1 <= V < 2^31. Columns lie side by side; rows may be apart.
// Types: f32, bf16 or f16; sums are float.
// Alignment: any. Fast where the rows of all tensors start equally far from a multiple of 16 bytes.
// Memory: no tensor overlaps another, but as may_alias() in fields() says.
// Errors: kInvalidArgument for a shape, a stride or a missing tensor; kUnsupported for sizes beyond
// these; kLaunchFailed for what the device says.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

}  // namespace tigon::softmax
