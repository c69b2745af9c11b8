// SPDX-License-Identifier: Apache-2.0
// linear_divergence: divergence of a student's logits x w^T + bias from those of a teacher,
// teacher_x teacher_w^T + teacher_bias, without ever holding all logits of either (knowledge
// distillation: Hinton et al. 2015; in chunks: Hsu et al. 2024). The teacher's layer has a width of
// its own and no gradient. With z the student's logits and dz their gradient as divergence has it:
//   loss = divergence(z, teacher_x teacher_w^T + teacher_bias)
//   dx = dz w,  dw = dz^T x,  dbias = sum_T dz
// What divergence says of kinds, equal rows, logits of -inf and ignored rows holds here, too.
// Vocabularies of different sizes are padded with a bias of -inf.
#pragma once
#include "kernels/divergence/divergence.h"
#include "kernels/linear_head/options.h"

namespace tigon::linear_divergence {

inline constexpr char kFormula[] =
    "divergence(x w^T + bias, teacher_x teacher_w^T + teacher_bias), in chunks";

inline constexpr Axis T{"T", "tokens"}, H{"H", "hidden size"}, G{"G", "hidden size of the teacher"},
    V{"V", "vocabulary size"};

using divergence::Kind;
using divergence::Options;
using divergence::options;
using linear_head::chunk_options;
using linear_head::ChunkOptions;
using linear_head::head_gradients;
using linear_head::HeadGradients;
using linear_head::Split;

// The layer of the teacher, of any pass.
template <class P>
struct Teacher {
  using Elem = typename P::Elem;
  View<const Elem, 2> teacher_x, teacher_w;
  View<const Elem, 1> teacher_bias;  // left out: none
};
template <class Args>
constexpr void teacher_matrices(auto&& f) {
  using Matrix = View<const typename Args::Elem, 2> Args::*;
  f(strided(in(Matrix(&Args::teacher_x), "teacher_x", {T, G})));
  f(strided(in(Matrix(&Args::teacher_w), "teacher_w", {V, G})));
}
template <class Args>
constexpr void teacher_bias(auto&& f) {
  using Vector = View<const typename Args::Elem, 1> Args::*;
  f(on_request(in(Vector(&Args::teacher_bias), "teacher_bias", {V})));
}

// Computes all logits of both once, in chunks of rows whatever `split` is: nothing is summed over
// them, so the vocabulary need not be cut. logits_bytes is of each of the two.
template <class P>
struct Forward : Options, ChunkOptions, Teacher<P> {
  static constexpr char kName[] = "linear_divergence.forward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x, w;
  View<const int64_t, 1> target;  // says which rows are ignored, and nothing else
  View<const Elem, 1> bias;       // left out: none
  View<Accum, 1> loss;
  View<Accum, 1> lse, teacher_lse, slope;  // for backward; 0 for an ignored row
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Forward::x, "x", {T, H})));
    f(strided(in(&Forward::w, "w", {V, H})));
    teacher_matrices<Forward>(f);
    f(in(&Forward::target, "target", {T}));
    f(on_request(in(&Forward::bias, "bias", {V})));
    teacher_bias<Forward>(f);
    f(out(&Forward::loss, "loss", {T}));
    f(saved(&Forward::lse, "lse", {T}));
    f(saved(&Forward::teacher_lse, "teacher_lse", {T}));
    f(saved(&Forward::slope, "slope", {T}));
    options(f);
    chunk_options(f);
  }
};

// Computes the logits again (rounded to the element type) and, over the student's, their gradient,
// then dx and dw; what is summed over chunks is summed in fp32 and rounded once: HeadGradients.
template <class P>
struct Backward : Options, ChunkOptions, Teacher<P>, HeadGradients<P> {
  static constexpr char kName[] = "linear_divergence.backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x, w;
  View<const int64_t, 1> target;
  View<const Elem, 1> bias;
  View<const Accum, 1> lse, teacher_lse, slope;  // from forward
  View<const Accum, 1> dloss;                    // upstream gradient
  View<Accum, 1> dbias;                          // left out: not computed
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Backward::x, "x", {T, H})));
    f(strided(in(&Backward::w, "w", {V, H})));
    teacher_matrices<Backward>(f);
    f(in(&Backward::target, "target", {T}));
    f(on_request(in(&Backward::bias, "bias", {V})));
    teacher_bias<Backward>(f);
    f(in(&Backward::lse, "lse", {T}));
    f(in(&Backward::teacher_lse, "teacher_lse", {T}));
    f(in(&Backward::slope, "slope", {T}));
    f(gradient("loss", in(&Backward::dloss, "dloss", {T})));
    head_gradients<Backward>(f, T, H, V);
    f(on_request(gradient("bias", out(&Backward::dbias, "dbias", {V}))));
    options(f);
    chunk_options(f);
  }
};

template <class P>
using Passes = std::tuple<Forward<P>, Backward<P>>;

// Both enqueue on `stream` and wait for nothing.
// Shapes: as in fields(), T >= 0, 1 <= H, G < 2^31, V >= 1, T and V < 2^31. Columns lie side by
// side; rows of matrices may be apart and must not overlap.
// Types: x, w, bias, the teacher's, dx and dw are f32, bf16 or f16; target int64; all else float.
// Alignment: any. The products are fast where rows start at multiples of 16 bytes.
// Memory: no tensor overlaps another.
// Errors: kInvalidArgument for a shape, a stride, an option, a missing tensor or too little
// scratch; kUnsupported for sizes beyond these; kLaunchFailed for what the device or the GEMM
// library says.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

// Bytes of scratch: one chunk of logits of each of the two, the GEMM's workspaces and, in backward
// with several chunks, what is summed over them in fp32 and then rounded: dw [V, H], or dx [T, H]
// where the vocabulary is cut. With max_valid_rows = R also x, teacher_x and dx of these rows.
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

}  // namespace tigon::linear_divergence
