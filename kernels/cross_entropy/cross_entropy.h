// SPDX-License-Identifier: Apache-2.0
// cross_entropy: loss of logits against target classes; LossOptions has the formula. Losses and
// statistics are fp32.
#pragma once
#include "kernels/loss/options.h"

namespace tigon::cross_entropy {

inline constexpr char kFormula[] =
    "loss = lse(x) - x_target, with label smoothing, z-loss, softcap, ignore_index";

inline constexpr Axis T{"T", "tokens"}, V{"V", "vocabulary size"};

template <class P>
struct Forward : LossOptions {
  static constexpr char kName[] = "cross_entropy.forward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> logits;
  View<const int64_t, 1> target;
  View<Accum, 1> loss;  // [1], or [T] with reduction none
  View<Accum, 1> lse;   // of the softcapped logits, for backward; 0 for an ignored row
  View<const Accum, 1> class_weight;         // left out: 1 each
  View<const Accum, 1> normaliser;           // left out: counted
  View<Accum, 1> z_part, accuracy, entropy;  // left out: not computed
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Forward::logits, "logits", {T, V})));
    f(in(&Forward::target, "target", {T}));
    f(out(&Forward::loss, "loss", {loss_length(T)}));
    f(saved(&Forward::lse, "lse", {T}));
    loss_inputs<Forward>(f, V);
    loss_results<Forward>(f, T);
    loss_options(f);
  }
};

// The gradient takes the place of the logits.
template <class P>
struct Backward : LossOptions {
  static constexpr char kName[] = "cross_entropy.backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<Elem, 2> logits;  // in: logits, out: their gradient
  View<const int64_t, 1> target;
  View<const Accum, 1> lse;    // from forward
  View<const Accum, 1> dloss;  // upstream gradient, [1] or [T]; left out: 1
  View<const Accum, 1> class_weight;
  View<const Accum, 1> normaliser;
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(gradient("logits", inout(&Backward::logits, "logits", {T, V}))));
    f(in(&Backward::target, "target", {T}));
    f(in(&Backward::lse, "lse", {T}));
    f(optional(gradient("loss", in(&Backward::dloss, "dloss", {loss_length(T)}))));
    loss_inputs<Backward>(f, V);
    loss_options(f);
  }
};

// Both in one sweep: each logit is read once from memory and its gradient written once over it, as
// in Liger-Kernel (Hsu et al. 2024); the maximum and the sum are found together (Milakov and
// Gimelshein 2018).
template <class P>
struct ForwardBackward : LossOptions {
  static constexpr char kName[] = "cross_entropy.forward_backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<Elem, 2> logits;  // in: logits, out: their gradient
  View<const int64_t, 1> target;
  View<const Accum, 1> dloss;  // upstream gradient, [1] or [T]; left out: 1
  View<Accum, 1> loss;         // [1], or [T] with reduction none
  View<Accum, 1> lse;
  View<const Accum, 1> class_weight;
  View<const Accum, 1> normaliser;
  View<Accum, 1> z_part, accuracy, entropy;
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(gradient("logits", inout(&ForwardBackward::logits, "logits", {T, V}))));
    f(in(&ForwardBackward::target, "target", {T}));
    f(optional(gradient("loss", in(&ForwardBackward::dloss, "dloss", {loss_length(T)}))));
    f(out(&ForwardBackward::loss, "loss", {loss_length(T)}));
    f(out(&ForwardBackward::lse, "lse", {T}));
    loss_inputs<ForwardBackward>(f, V);
    loss_results<ForwardBackward>(f, T);
    loss_options(f);
  }
};

template <class P>
using Passes = std::tuple<Forward<P>, Backward<P>, ForwardBackward<P>>;

// All enqueue on `stream` and wait for nothing.
// Shapes: as in fields(), T >= 0, 1 <= V < 2^31. The columns of logits lie side by side; rows may
// be apart and must not overlap.
// Types: logits are f32, bf16 or f16; target int64; all else float.
// Alignment: any.
// Memory: the gradient takes the place of the logits; no other tensor overlaps another.
// Errors: kInvalidArgument for a shape, a stride, an option, a missing tensor or too little
// scratch; kUnsupported for V >= 2^31 and for 2^31 blocks or more; kLaunchFailed for what the
// device says. A target that is no class is no error: LossOptions says what becomes of its row.
template <class P>
Status forward(const Forward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);
template <class P>
Status forward_backward(const ForwardBackward<P>& args, Stream stream);

// Bytes of scratch: the normaliser and, where they are reduced, one loss and one of each further
// result per row.
template <class P>
size_t workspace(const Forward<P>& args);
template <class P>
size_t workspace(const Backward<P>& args);
template <class P>
size_t workspace(const ForwardBackward<P>& args);

}  // namespace tigon::cross_entropy
