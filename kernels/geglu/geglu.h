// geglu: y = gelu(a) * b, gelu(a) = a * Phi(a)   (Shazeer 2020; Hendrycks and Gimpel 2016)
#pragma once
#include "kernels/signature/signature.h"

namespace tigon::geglu {

inline constexpr Axis T{"T", "tokens"}, F{"F", "intermediate size"};

// What stands for the normal distribution Phi: (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))) / 2, or
// Phi itself through erf.
enum class Approximate : int { kTanh, kNone };

template <class P>
struct Forward {
  using Elem = typename P::Elem;
  View<const Elem, 2> a, b;  // gate and up projections; rows may be strided
  View<Elem, 2> y;
  Approximate approximate = Approximate::kTanh;
  static auto fields() {
    return std::tuple{in(&Forward::a, "a", {T, F}), in(&Forward::b, "b", {T, F}),
                      out(&Forward::y, "y", {T, F}),
                      option(&Forward::approximate, "approximate", {"tanh", "none"})};
  }
};

// da = dy * b * gelu'(a), db = dy * gelu(a); nothing is saved, both are recomputed.
template <class P>
struct Backward {
  using Elem = typename P::Elem;
  View<const Elem, 2> dy, a, b;
  View<Elem, 2> da, db;  // may be a's and b's memory
  Approximate approximate = Approximate::kTanh;
  static auto fields() {
    return std::tuple{in(&Backward::dy, "dy", {T, F}),
                      in(&Backward::a, "a", {T, F}),
                      in(&Backward::b, "b", {T, F}),
                      out(&Backward::da, "da", {T, F}),
                      out(&Backward::db, "db", {T, F}),
                      option(&Backward::approximate, "approximate", {"tanh", "none"})};
  }
};

template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

}  // namespace tigon::geglu
