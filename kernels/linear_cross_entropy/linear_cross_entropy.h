// SPDX-License-Identifier: Apache-2.0
// linear_cross_entropy: cross_entropy(x w^T + bias, target) without ever holding all logits; rows,
// or the vocabulary, go in chunks of a byte budget. By rows as in Liger-Kernel (Hsu et al. 2024),
// by the vocabulary as in Cut Cross-Entropy (Wijmans et al. 2024).
#pragma once
#include "kernels/linear_head/options.h"
#include "kernels/loss/options.h"

namespace tigon::linear_cross_entropy {

inline constexpr char kFormula[] = "cross_entropy(x w^T + bias, target), rows in chunks";

inline constexpr Axis T{"T", "tokens"}, H{"H", "hidden size"}, V{"V", "vocabulary size"};

using linear_head::chunk_options;
using linear_head::ChunkOptions;
using linear_head::head_gradients;
using linear_head::HeadGradients;
using linear_head::Split;

template <class P>
struct Forward : LossOptions, ChunkOptions {
  static constexpr char kName[] = "linear_cross_entropy.forward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x, w;
  View<const int64_t, 1> target;
  View<Accum, 1> loss;  // [1], or [T] with reduction none
  View<Accum, 1> lse;
  View<const Elem, 1> bias;                  // left out: none
  View<const Accum, 1> class_weight;         // left out: 1 each
  View<const Accum, 1> normaliser;           // left out: counted
  View<Accum, 1> z_part, accuracy, entropy;  // left out: not computed
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Forward::x, "x", {T, H})));
    f(strided(in(&Forward::w, "w", {V, H})));
    f(in(&Forward::target, "target", {T}));
    f(out(&Forward::loss, "loss", {loss_length(T)}));
    f(saved(&Forward::lse, "lse", {T}));
    f(on_request(in(&Forward::bias, "bias", {V})));
    loss_inputs<Forward>(f, V);
    loss_results<Forward>(f, T);
    loss_options(f);
    chunk_options(f);
  }
};

// Loss and both gradients in one sweep over the chunks: logits (rounded to the element type), their
// gradient over them, then dx and dw; what is summed over chunks is summed in fp32 and rounded
// once. dbias = sum_T dlogits; HeadGradients has the others. Into dw_fp32 or dw_accum dw is summed
// without scratch, which is fast in long chunks only.
template <class P>
struct ForwardBackward : LossOptions, ChunkOptions, HeadGradients<P> {
  static constexpr char kName[] = "linear_cross_entropy.forward_backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x, w;
  View<const int64_t, 1> target;
  View<const Accum, 1> dloss;  // upstream gradient, [1] or [T]; left out: 1
  View<Accum, 1> loss;         // [1], or [T] with reduction none
  View<Accum, 1> lse;
  View<const Elem, 1> bias;
  View<Accum, 1> dbias;  // left out: not computed
  View<const Accum, 1> class_weight;
  View<const Accum, 1> normaliser;
  View<Accum, 1> z_part, accuracy, entropy;
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(in(&ForwardBackward::x, "x", {T, H})));
    f(strided(in(&ForwardBackward::w, "w", {V, H})));
    f(in(&ForwardBackward::target, "target", {T}));
    f(optional(gradient("loss", in(&ForwardBackward::dloss, "dloss", {loss_length(T)}))));
    f(out(&ForwardBackward::loss, "loss", {loss_length(T)}));
    f(out(&ForwardBackward::lse, "lse", {T}));
    head_gradients<ForwardBackward>(f, T, H, V);
    f(on_request(in(&ForwardBackward::bias, "bias", {V})));
    f(on_request(gradient("bias", out(&ForwardBackward::dbias, "dbias", {V}))));
    loss_inputs<ForwardBackward>(f, V);
    loss_results<ForwardBackward>(f, T);
    loss_options(f);
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

// Bytes of scratch: one chunk of logits, row statistics, the GEMM's workspace and, with several
// chunks, what is summed over them in fp32 and then rounded: dw [V, H], or dx [T, H] where the
// vocabulary is cut. With max_valid_rows = R also x and dx of these rows, [R, H] each.
template <class P>
size_t workspace(const Forward<P>& args);
template <class P>
size_t workspace(const ForwardBackward<P>& args);

// Times several GEMM algorithms for these shapes and remembers the fastest. Optional: without it
// the library's first choice is used. Allocates and synchronises, so it belongs outside a training
// step; does nothing on the host executor. Errors as above, and kLaunchFailed where no algorithm
// ran or there is no memory for a copy of the operands.
template <class P>
Status tune(const Forward<P>& args);
template <class P>
Status tune(const ForwardBackward<P>& args);

}  // namespace tigon::linear_cross_entropy
