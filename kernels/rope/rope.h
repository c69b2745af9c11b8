// rope: rotary position embedding, rotate-half form, q and k in place, grouped heads   (Su et al.
// 2021)
//   (x1, x2) = halves of a head;  x1' = x1 cos - x2 sin,  x2' = x2 cos + x1 sin;  backward turns
//   the other way.
#pragma once
#include "kernels/signature/signature.h"

namespace tigon::rope {

inline constexpr Axis T{"T", "tokens"}, Q{"Q", "query heads"}, K{"K", "key heads"},
    D{"D", "head size, even"};

template <class P>
struct Forward {
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<Elem, 3> q, k;             // rotated in place; token and head strides are free
  View<const Accum, 2> cos, sin;  // one angle per token and pair
  static auto fields() {
    return std::tuple{inout(&Forward::q, "q", {T, Q, D}), inout(&Forward::k, "k", {T, K, D}),
                      in(&Forward::cos, "cos", {T, Expr(D) / 2}),
                      in(&Forward::sin, "sin", {T, Expr(D) / 2})};
  }
};

template <class P>
struct Backward {
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<Elem, 3> dq, dk;  // gradients, turned back in place
  View<const Accum, 2> cos, sin;
  static auto fields() {
    return std::tuple{inout(&Backward::dq, "dq", {T, Q, D}), inout(&Backward::dk, "dk", {T, K, D}),
                      in(&Backward::cos, "cos", {T, Expr(D) / 2}),
                      in(&Backward::sin, "sin", {T, Expr(D) / 2})};
  }
};

template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

}  // namespace tigon::rope
