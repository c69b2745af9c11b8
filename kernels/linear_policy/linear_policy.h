// SPDX-License-Identifier: Apache-2.0
// linear_policy: losses of policy gradients over log_prob(x w^T + bias, target), with their
// gradients in one sweep, without ever holding all logits. A row is a token that the policy drew.
// With z = x w^T + bias, tau the temperature, y a row's target, A its advantage:
//   logp = z_y / tau - log sum_v exp(z_v / tau),  r = exp(logp - old_logp)
//   loss = weight (i f(logp) + kl_weight k3)
//   k3 = exp(d) - d - 1,  d = ref_logp - logp     (Schulman 2020; 0 without ref_logp)
//   i = min(exp(old_logp - sampling_logp), cap)   (1 without sampling_logp; Yao et al. 2025)
//   dz_v = ([v = y] - p_v) dloss/dlogp / tau,  p = softmax(z / tau)
//   dx = dz w,  dw = dz^T x,  dbias = sum_T dz
// with f by objective (token_losses.h)
//   clip   -min(min(r, delta) A, clamp(r, 1 - clip_low, 1 + clip_high) A)
//          (PPO: Schulman et al. 2017; GRPO: Shao et al. 2024; delta: Prime Intellect 2025)
//   cispo  -min(r, clip_high) A logp, where r has no gradient (MiniMax 2025)
//   sapo   -A 4 / t sigmoid(t (r - 1)), t = sapo_positive where A > 0, else sapo_negative
//          (Gao et al. 2025)
// Reductions of the literature: BNPO is mean; DAPO mean with normaliser = the tokens of all steps
// and devices; Dr. GRPO mean with normaliser = sequences times their greatest length; GRPO sum with
// weight = 1 / (sequences times the length of the token's own).
// What log_prob says of logits of -inf, ignored rows and targets that are no class holds here, too.
#pragma once
#include "kernels/linear_head/options.h"
#include "kernels/loss/options.h"

namespace tigon::linear_policy {

inline constexpr char kFormula[] =
    "policy loss of log_prob(x w^T + bias, target): clipped, CISPO or SAPO, with k3, in chunks";

inline constexpr Axis T{"T", "tokens"}, H{"H", "hidden size"}, V{"V", "vocabulary size"};

using linear_head::chunk_options;
using linear_head::ChunkOptions;
using linear_head::head_gradients;
using linear_head::HeadGradients;
using linear_head::Split;

enum class Objective : int { kClip, kCispo, kSapo };

struct Options {
  int64_t ignore_index = -100;
  float temperature = 1.0f;  // above 0
  Objective objective = Objective::kClip;
  float clip_low = 0.2f, clip_high = 0.2f;
  float delta = 0.0f;  // 0: none
  float sapo_positive = 1.0f, sapo_negative = 1.05f;
  float kl_weight = 0.0f;
  float importance_cap = 2.0f;
  Reduction reduction = Reduction::kMean;
};
constexpr void options(auto&& f) {
  f(option(&Options::ignore_index, "ignore_index"));
  f(option(&Options::temperature, "temperature"));
  f(option(&Options::objective, "objective", {"clip", "cispo", "sapo"}));
  f(option(&Options::clip_low, "clip_low"));
  f(option(&Options::clip_high, "clip_high"));
  f(option(&Options::delta, "delta"));
  f(option(&Options::sapo_positive, "sapo_positive"));
  f(option(&Options::sapo_negative, "sapo_negative"));
  f(option(&Options::kl_weight, "kl_weight"));
  f(option(&Options::importance_cap, "importance_cap"));
  f(option(&Options::reduction, "reduction", {"mean", "sum", "none"}));
}

// What is known of the tokens, and what is returned beside the loss: with reduction none as [T],
// else added or averaged over the rows that are not ignored, without weights.
template <class P>
struct Tokens {
  using Accum = typename P::Accum;
  View<const Accum, 1> advantage;
  View<const Accum, 1> old_logp;       // left out: logp itself, r = 1
  View<const Accum, 1> ref_logp;       // left out: no k3
  View<const Accum, 1> sampling_logp;  // of what drew the tokens, with old_logp; left out: the same
  View<const Accum, 1> weight;         // left out: 1
  View<const Accum, 1> normaliser;     // what mean divides by; left out: rows that count
  View<Accum, 1> kl;                   // k3
  View<Accum, 1> clipped;              // 1 where f is constant beyond a bound on r, else 0
  View<Accum, 1> entropy;              // of the softmax; has no gradient
  View<Accum, 1> logp;                 // [T] with every reduction
};
template <class Args>
constexpr void token_inputs(auto&& f) {
  using In = View<const typename Args::Accum, 1> Args::*;
  f(in(In(&Args::advantage), "advantage", {T}));
  f(optional(in(In(&Args::old_logp), "old_logp", {T})));
  f(on_request(in(In(&Args::ref_logp), "ref_logp", {T})));
  f(on_request(in(In(&Args::sampling_logp), "sampling_logp", {T})));
  f(on_request(in(In(&Args::weight), "weight", {T})));
  f(on_request(in(In(&Args::normaliser), "normaliser", {1})));
}
template <class Args>
constexpr void token_results(auto&& f) {
  using Out = View<typename Args::Accum, 1> Args::*;
  f(on_request(out(Out(&Args::kl), "kl", {loss_length(T)})));
  f(on_request(out(Out(&Args::clipped), "clipped", {loss_length(T)})));
  f(on_request(out(Out(&Args::entropy), "entropy", {loss_length(T)})));
  f(on_request(out(Out(&Args::logp), "logp", {T})));
}

template <class P>
struct Forward : Options, ChunkOptions, Tokens<P> {
  static constexpr char kName[] = "linear_policy.forward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x, w;
  View<const int64_t, 1> target;
  View<const Elem, 1> bias;  // left out: none
  View<Accum, 1> loss;       // [1], or [T] with reduction none
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Forward::x, "x", {T, H})));
    f(strided(in(&Forward::w, "w", {V, H})));
    f(in(&Forward::target, "target", {T}));
    token_inputs<Forward>(f);
    f(on_request(in(&Forward::bias, "bias", {V})));
    f(out(&Forward::loss, "loss", {loss_length(T)}));
    token_results<Forward>(f);
    options(f);
    chunk_options(f);
  }
};

// Loss and gradients in one sweep over the chunks, as linear_cross_entropy has them: three products
// and no logits written. HeadGradients says where they go.
template <class P>
struct ForwardBackward : Options, ChunkOptions, Tokens<P>, HeadGradients<P> {
  static constexpr char kName[] = "linear_policy.forward_backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x, w;
  View<const int64_t, 1> target;
  View<const Elem, 1> bias;
  View<const Accum, 1> dloss;  // upstream gradient, [1] or [T]; left out: 1
  View<Accum, 1> loss;         // [1], or [T] with reduction none
  View<Accum, 1> dbias;        // left out: not computed
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(in(&ForwardBackward::x, "x", {T, H})));
    f(strided(in(&ForwardBackward::w, "w", {V, H})));
    f(in(&ForwardBackward::target, "target", {T}));
    token_inputs<ForwardBackward>(f);
    f(on_request(in(&ForwardBackward::bias, "bias", {V})));
    f(optional(gradient("loss", in(&ForwardBackward::dloss, "dloss", {loss_length(T)}))));
    f(out(&ForwardBackward::loss, "loss", {loss_length(T)}));
    token_results<ForwardBackward>(f);
    head_gradients<ForwardBackward>(f, T, H, V);
    f(on_request(gradient("bias", out(&ForwardBackward::dbias, "dbias", {V}))));
    options(f);
    chunk_options(f);
  }
};

template <class P>
using Passes = std::tuple<Forward<P>, ForwardBackward<P>>;

// Both enqueue on `stream` and wait for nothing.
// Shapes: as in fields(), T >= 0, 1 <= H < 2^31, V >= 1, T and V < 2^31. Columns lie side by side;
// rows of matrices may be apart and must not overlap.
// Types: x, w, bias, dx and dw are f32, bf16 or f16; target int64; all else float.
// Alignment: any. The products are fast where rows start at multiples of 16 bytes.
// Memory: no tensor overlaps another. dw, or dw_fp32, may hold logits until it is written (Split).
// Errors: kInvalidArgument for a shape, a stride, an option, a missing tensor or too little
// scratch; kUnsupported for sizes beyond these; kLaunchFailed for what the device or the GEMM
// library says.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status forward_backward(const ForwardBackward<P>& args, Stream stream);

// Bytes of scratch: as linear_cross_entropy's.
template <class P>
size_t workspace(const Forward<P>& args);
template <class P>
size_t workspace(const ForwardBackward<P>& args);

// As linear_cross_entropy's tune().
template <class P>
Status tune(const Forward<P>& args);
template <class P>
Status tune(const ForwardBackward<P>& args);

}  // namespace tigon::linear_policy
