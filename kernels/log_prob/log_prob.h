// SPDX-License-Identifier: Apache-2.0
// log_prob: log-probabilities of given tokens, and the entropy of the distributions that they are
// drawn from. With x a row of logits, y its target, tau the temperature:
//   lse = log sum_v exp(x_v / tau)
//   log p_v = x_v / tau - lse,  logp = log p_y
//   entropy = -sum_v p_v log p_v     (Shannon 1948; with a temperature: Ackley et al. 1985)
// and for upstream gradients g of logp and h of entropy
//   dx_v = ([v = y] g - p_v (g + h (log p_v + entropy))) / tau
// A logit of -inf has p = 0 and adds nothing to the entropy; as the target's it gives logp = -inf.
// An ignored row gives 0 everywhere and its logits do not matter. A target that is neither
// ignore_index nor in [0, V) is never used as an index: logp and the gradient of its row are NaN.
#pragma once
#include "kernels/signature/signature.h"

namespace tigon::log_prob {

inline constexpr char kFormula[] =
    "logp = x_target / temperature - lse(x / temperature), and the entropy of softmax(x / "
    "temperature)";

inline constexpr Axis T{"T", "tokens"}, V{"V", "vocabulary size"};

struct Options {
  int64_t ignore_index = -100;
  float temperature = 1.0f;  // above 0
};
constexpr void options(auto&& f) {
  f(option(&Options::ignore_index, "ignore_index"));
  f(option(&Options::temperature, "temperature"));
}

template <class P>
struct Forward : Options {
  static constexpr char kName[] = "log_prob.forward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> logits;
  View<const int64_t, 1> target;
  View<Accum, 1> logp;
  View<Accum, 1> lse;      // for backward; 0 for an ignored row
  View<Accum, 1> entropy;  // left out: not computed
  static constexpr void fields(auto&& f) {
    f(strided(in(&Forward::logits, "logits", {T, V})));
    f(in(&Forward::target, "target", {T}));
    f(out(&Forward::logp, "logp", {T}));
    f(saved(&Forward::lse, "lse", {T}));
    f(on_request(out(&Forward::entropy, "entropy", {T})));
    options(f);
  }
};

template <class P>
struct Backward : Options {
  static constexpr char kName[] = "log_prob.backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> logits;
  View<const int64_t, 1> target;
  View<const Accum, 1> lse;       // from forward
  View<const Accum, 1> dlogp;     // upstream gradients
  View<const Accum, 1> dentropy;  // left out: 0
  View<const Accum, 1> entropy;   // from forward, where there is dentropy
  View<Elem, 2> dlogits;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Backward::logits, "logits", {T, V})));
    f(in(&Backward::target, "target", {T}));
    f(in(&Backward::lse, "lse", {T}));
    f(gradient("logp", in(&Backward::dlogp, "dlogp", {T})));
    f(on_request(gradient("entropy", in(&Backward::dentropy, "dentropy", {T}))));
    f(on_request(in(&Backward::entropy, "entropy", {T})));
    f(may_alias({"logits"},
                strided(gradient("logits", out(&Backward::dlogits, "dlogits", {T, V})))));
    options(f);
  }
};

template <class P>
using Passes = std::tuple<Forward<P>, Backward<P>>;

// Both enqueue on `stream` and wait for nothing.
// Shapes: as in fields(), 0 <= T < 2^31, 1 <= V < 2^31. The columns of logits and dlogits lie side
// by side; rows may be apart and must not overlap.
// Types: logits and dlogits are f32, bf16 or f16; target int64; all else float.
// Alignment: any. Fast where the rows of both tensors start equally far from a multiple of 16
// bytes.
// Memory: no tensor overlaps another, but as may_alias() in fields() says.
// Errors: kInvalidArgument for a shape, a stride, an option or a missing tensor; kUnsupported for
// sizes beyond these; kLaunchFailed for what the device says.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

}  // namespace tigon::log_prob
