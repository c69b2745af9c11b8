// swiglu: y = silu(a) * b, silu(a) = a * sigmoid(a)   (Shazeer 2020)
#pragma once
#include "kernels/signature/signature.h"

namespace tigon::swiglu {

inline constexpr Axis T{"T", "tokens"}, F{"F", "intermediate size"};

template <class P>
struct Forward {
  using Elem = typename P::Elem;
  View<const Elem, 2> a, b;  // gate and up projections; rows may be strided
  View<Elem, 2> y;
  static auto fields() {
    return std::tuple{in(&Forward::a, "a", {T, F}), in(&Forward::b, "b", {T, F}),
                      out(&Forward::y, "y", {T, F})};
  }
};

// da = dy * b * (s + silu(a) * (1 - s)), db = dy * silu(a), s = sigmoid(a); nothing is saved, both
// are recomputed.
template <class P>
struct Backward {
  using Elem = typename P::Elem;
  View<const Elem, 2> dy, a, b;
  View<Elem, 2> da, db;  // may be a's and b's memory
  static auto fields() {
    return std::tuple{in(&Backward::dy, "dy", {T, F}), in(&Backward::a, "a", {T, F}),
                      in(&Backward::b, "b", {T, F}), out(&Backward::da, "da", {T, F}),
                      out(&Backward::db, "db", {T, F})};
  }
};

template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

}  // namespace tigon::swiglu
