// SPDX-License-Identifier: Apache-2.0
// linear_log_prob: log_prob(x w^T + bias, target) without ever holding all logits:
// log-probabilities of given tokens, and the entropy, behind the linear layer; rows, or the
// vocabulary, go in chunks of a byte budget (Hsu et al. 2024; Wijmans et al. 2024). With
// z = x w^T + bias, tau the temperature, y a row's target:
//   lse = log sum_v exp(z_v / tau),  logp = z_y / tau - lse
//   entropy = -sum_v p_v log p_v,  p = softmax(z / tau)
//   dz_v = ([v = y] g - p_v (g + h (log p_v + entropy))) / tau
//   dx = dz w,  dw = dz^T x,  dbias = sum_T dz
// for upstream gradients g of logp and h of entropy. What log_prob says of logits of -inf, ignored
// rows and targets that are no class holds here, too.
#pragma once
#include "kernels/linear_head/options.h"
#include "kernels/log_prob/log_prob.h"

namespace tigon::linear_log_prob {

inline constexpr char kFormula[] = "log_prob(x w^T + bias, target) and its entropy, in chunks";

inline constexpr Axis T{"T", "tokens"}, H{"H", "hidden size"}, V{"V", "vocabulary size"};

using linear_head::chunk_options;
using linear_head::ChunkOptions;
using linear_head::head_gradients;
using linear_head::HeadGradients;
using linear_head::Split;
using log_prob::Options;
using log_prob::options;

// Computes all logits once, in chunks, and writes none of them.
template <class P>
struct Forward : Options, ChunkOptions {
  static constexpr char kName[] = "linear_log_prob.forward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x, w;
  View<const int64_t, 1> target;
  View<const Elem, 1> bias;  // left out: none
  View<Accum, 1> logp;
  View<Accum, 1> lse;      // for backward; 0 for an ignored row
  View<Accum, 1> entropy;  // left out: not computed
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Forward::x, "x", {T, H})));
    f(strided(in(&Forward::w, "w", {V, H})));
    f(in(&Forward::target, "target", {T}));
    f(on_request(in(&Forward::bias, "bias", {V})));
    f(out(&Forward::logp, "logp", {T}));
    f(saved(&Forward::lse, "lse", {T}));
    f(on_request(out(&Forward::entropy, "entropy", {T})));
    options(f);
    chunk_options(f);
  }
};

// Computes the logits again (rounded to the element type) and, over them, their gradient, then dx
// and dw; what is summed over chunks is summed in fp32 and rounded once: HeadGradients.
template <class P>
struct Backward : Options, ChunkOptions, HeadGradients<P> {
  static constexpr char kName[] = "linear_log_prob.backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x, w;
  View<const int64_t, 1> target;
  View<const Elem, 1> bias;
  View<const Accum, 1> lse;       // from forward
  View<const Accum, 1> dlogp;     // upstream gradients
  View<const Accum, 1> dentropy;  // left out: 0
  View<const Accum, 1> entropy;   // from forward, where there is dentropy
  View<Accum, 1> dbias;           // left out: not computed
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Backward::x, "x", {T, H})));
    f(strided(in(&Backward::w, "w", {V, H})));
    f(in(&Backward::target, "target", {T}));
    f(on_request(in(&Backward::bias, "bias", {V})));
    f(in(&Backward::lse, "lse", {T}));
    f(gradient("logp", in(&Backward::dlogp, "dlogp", {T})));
    f(on_request(gradient("entropy", in(&Backward::dentropy, "dentropy", {T}))));
    f(on_request(in(&Backward::entropy, "entropy", {T})));
    head_gradients<Backward>(f, T, H, V);
    f(on_request(gradient("bias", out(&Backward::dbias, "dbias", {V}))));
    options(f);
    chunk_options(f);
  }
};

template <class P>
using Passes = std::tuple<Forward<P>, Backward<P>>;

// Both enqueue on `stream` and wait for nothing.
// Shapes: as in fields(), T >= 0, 1 <= H < 2^31, V >= 1, T and V < 2^31. Columns lie side by side;
// rows of matrices may be apart and must not overlap.
// Types: x, w, bias, dx and dw are f32, bf16 or f16; target int64; all else float.
// Alignment: any. The products are fast where rows start at multiples of 16 bytes.
// Memory: no tensor overlaps another.
// Errors: kInvalidArgument for a shape, a stride, an option, a missing tensor or too little
// scratch; kUnsupported for sizes beyond these; kLaunchFailed for what the device or the GEMM
// library says.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

// Bytes of scratch: one chunk of logits, in forward the rows' statistics, the GEMM's workspace and,
// in backward with several chunks, what is summed over them in fp32 and then rounded: dw [V, H], or
// dx [T, H] where the vocabulary is cut. With max_valid_rows = R also x and dx of these rows.
template <class P>
size_t workspace(const Forward<P>& args);
template <class P>
size_t workspace(const Backward<P>& args);

// Times several GEMM algorithms for these shapes and remembers the fastest. Optional: without it
// the library's first choice is used. Allocates and synchronises; does nothing on the host
// executor. Errors as above, and kLaunchFailed where no algorithm ran or there is no memory for a
// copy of the operands.
template <class P>
Status tune(const Forward<P>& args);
template <class P>
Status tune(const Backward<P>& args);

}  // namespace tigon::linear_log_prob
