// SPDX-License-Identifier: Apache-2.0
// divergence: how far a student's distributions of tokens are from a teacher's, of the logits of
// both (knowledge distillation: Hinton et al. 2015). With x a row of the student's logits, y the
// teacher's, tau the temperature:
//   q = softmax(x / tau), p = softmax(y / tau)
//   forward_kl  loss = sum_v p_v log(p_v / q_v)
//   reverse_kl  loss = sum_v q_v log(q_v / p_v)
//   jsd         loss = beta sum_v p_v log(p_v / m_v) + (1 - beta) sum_v q_v log(q_v / m_v)
//               with m = beta p + (1 - beta) q
// reverse_kl is that of MiniLLM (Gu et al. 2024), jsd that of GKD (Agarwal et al. 2024).
// At beta 0 jsd is forward_kl, at 1 reverse_kl, as in TRL's GKDTrainer. With c_v = 0, log(q_v /
// p_v) and (1 - beta) log(q_v / m_v) and an upstream gradient g:
//   forward_kl  dx_v = g (q_v - p_v) / tau
//   the others  dx_v = g q_v (c_v - slope) / tau,  slope = sum_v q_v c_v
// The teacher has no gradient. Equal rows give a loss and a gradient of exactly 0. A logit of -inf
// has no probability: of the teacher it adds nothing, of the student alone it makes forward_kl
// infinite, of the teacher alone reverse_kl. So vocabularies of different sizes are padded with
// -inf. With a target, a row whose target is ignore_index gives 0 everywhere, and its logits do not
// matter; other targets mean nothing here.
#pragma once
#include "kernels/signature/signature.h"

namespace tigon::divergence {

inline constexpr char kFormula[] =
    "KL divergence, forward or reverse, or Jensen-Shannon divergence of softmax(logits / "
    "temperature) and softmax(teacher / temperature)";

inline constexpr Axis T{"T", "tokens"}, V{"V", "vocabulary size"};

enum class Kind : int { kForwardKl, kReverseKl, kJsd };

struct Options {
  Kind kind = Kind::kForwardKl;
  float beta = 0.5f;         // of jsd: the teacher's share of the mixture, in [0, 1]
  float temperature = 1.0f;  // above 0
  int64_t ignore_index = -100;
};
constexpr void options(auto&& f) {
  f(option(&Options::kind, "kind", {"forward_kl", "reverse_kl", "jsd"}));
  f(option(&Options::beta, "beta"));
  f(option(&Options::temperature, "temperature"));
  f(option(&Options::ignore_index, "ignore_index"));
}

template <class P>
struct Forward : Options {
  static constexpr char kName[] = "divergence.forward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> logits;  // of the student
  View<const Elem, 2> teacher;
  View<const int64_t, 1> target;  // left out: no row is ignored
  View<Accum, 1> loss;
  View<Accum, 1> lse, teacher_lse, slope;  // for backward; 0 for an ignored row
  static constexpr void fields(auto&& f) {
    f(strided(in(&Forward::logits, "logits", {T, V})));
    f(strided(in(&Forward::teacher, "teacher", {T, V})));
    f(on_request(in(&Forward::target, "target", {T})));
    f(out(&Forward::loss, "loss", {T}));
    f(saved(&Forward::lse, "lse", {T}));
    f(saved(&Forward::teacher_lse, "teacher_lse", {T}));
    f(saved(&Forward::slope, "slope", {T}));
    options(f);
  }
};

template <class P>
struct Backward : Options {
  static constexpr char kName[] = "divergence.backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> logits;
  View<const Elem, 2> teacher;
  View<const int64_t, 1> target;
  View<const Accum, 1> lse, teacher_lse, slope;  // from forward
  View<const Accum, 1> dloss;                    // upstream gradient
  View<Elem, 2> dlogits;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Backward::logits, "logits", {T, V})));
    f(strided(in(&Backward::teacher, "teacher", {T, V})));
    f(on_request(in(&Backward::target, "target", {T})));
    f(in(&Backward::lse, "lse", {T}));
    f(in(&Backward::teacher_lse, "teacher_lse", {T}));
    f(in(&Backward::slope, "slope", {T}));
    f(gradient("loss", in(&Backward::dloss, "dloss", {T})));
    f(may_alias({"logits"},
                strided(gradient("logits", out(&Backward::dlogits, "dlogits", {T, V})))));
    options(f);
  }
};

template <class P>
using Passes = std::tuple<Forward<P>, Backward<P>>;

// Both enqueue on `stream` and wait for nothing.
// Shapes: as in fields(), 0 <= T < 2^31, 1 <= V < 2^31. The columns of logits, teacher and dlogits
// lie side by side; rows may be apart and must not overlap.
// Types: logits, teacher and dlogits are f32, bf16 or f16; target int64; all else float.
// Alignment: any. Fast where the rows of all of them start equally far from a multiple of 16 bytes.
// Memory: no tensor overlaps another, but as may_alias() in fields() says.
// Errors: kInvalidArgument for a shape, a stride, an option or a missing tensor; kUnsupported for
// sizes beyond these; kLaunchFailed for what the device says.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

}  // namespace tigon::divergence
