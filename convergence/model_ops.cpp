// SPDX-License-Identifier: Apache-2.0
// Rotation, attention, activation and residual sums with their arguments.
#include "convergence/model_ops.h"

#include "convergence/kernels.h"
#include "convergence/require.h"

namespace tigon::convergence {
namespace {

// The heads that begin at `data` in rows of q, k, v.
template <class Elem>
View<Elem, 3> heads_of(Elem* data, int heads, const AttentionShape& s) {
  return {data, {s.tokens(), heads, s.head_size}, {s.row(), s.head_size, 1}};
}

void set_options(rope::Options& options, const ModelConfig& c) {
  options.rotary = c.rotary;
  if (c.rotary_interleaved) options.pairing = rope::Pairing::kInterleaved;
}

geglu::Approximate approximate_of(const ModelConfig& c) {
  return c.activation == Activation::kGegluTanh ? geglu::Approximate::kTanh
                                                : geglu::Approximate::kNone;
}

}  // namespace

template <class P>
void ModelOps<P>::rotate(Elem* qkv) const {
  const PartRange range = c_.part(Part::kRotary);
  const AttentionShape shape = attention_shape(c_.config);
  const float *const cos = c_.b.cos, *const sin = c_.b.sin;
  rope::Forward<P> args;
  set_options(args, c_.config);
  args.q = heads_of(qkv, c_.config.heads, shape);
  args.k = heads_of(qkv + shape.q_size(), c_.config.kv_heads, shape);
  args.cos = view(cos, c_.tokens(), c_.rotary_pairs());
  args.sin = view(sin, c_.tokens(), c_.rotary_pairs());
  require(c_.ops.run(args, c_.stream), "rope forward");
}

template <class P>
void ModelOps<P>::rotate_back(Elem* dqkv) const {
  const PartRange range = c_.part(Part::kRotary);
  const AttentionShape shape = attention_shape(c_.config);
  const float *const cos = c_.b.cos, *const sin = c_.b.sin;
  rope::Backward<P> args;
  set_options(args, c_.config);
  args.dq = heads_of(dqkv, c_.config.heads, shape);
  args.dk = heads_of(dqkv + shape.q_size(), c_.config.kv_heads, shape);
  args.cos = view(cos, c_.tokens(), c_.rotary_pairs());
  args.sin = view(sin, c_.tokens(), c_.rotary_pairs());
  require(c_.ops.run(args, c_.stream), "rope backward");
}

template <class P>
void ModelOps<P>::attend(const Layer& b) const {
  const PartRange range = c_.part(Part::kAttention);
  require(attention_forward(AttentionForward<P>{attention_shape(c_.config), b.qkv, b.attention,
                                                b.lse, c_.b.attention_scratch},
                            c_.stream),
          "attention forward");
}

template <class P>
void ModelOps<P>::attend_backward(const Layer& b) const {
  const PartRange range = c_.part(Part::kAttention);
  require(attention_backward(
              AttentionBackward<P>{attention_shape(c_.config), b.qkv, b.attention, c_.b.dbranch,
                                   b.lse, c_.b.dqkv, c_.b.dattention_scratch},
              c_.stream),
          "attention backward");
}

template <class P>
void ModelOps<P>::add_residual(const Elem* x, const Elem* branch, Elem* y) const {
  const PartRange range = c_.part(Part::kOther);
  require(add(x, branch, y, c_.tokens() * c_.hidden(), c_.stream), "residual add");
}

template <class P>
void ModelOps<P>::activate(const Layer& b) const {
  const PartRange range = c_.part(Part::kActivation);
  const auto run = [&](auto args, const char* what) {
    const int64_t n = c_.tokens(), inner = c_.config.intermediate;
    args.a = {b.gate_up, {n, inner}, {2 * inner, 1}};
    args.b = {b.gate_up + inner, {n, inner}, {2 * inner, 1}};
    args.y = view(b.activated, n, inner);
    require(c_.ops.run(args, c_.stream), what);
  };
  if (c_.config.activation == Activation::kSwiglu)
    return run(swiglu::Forward<P>{}, "swiglu forward");
  geglu::Forward<P> args;
  args.approximate = approximate_of(c_.config);
  run(args, "geglu forward");
}

template <class P>
void ModelOps<P>::activate_backward(const Layer& b) const {
  const PartRange range = c_.part(Part::kActivation);
  const auto run = [&](auto args, const char* what) {
    const int64_t n = c_.tokens(), inner = c_.config.intermediate;
    const Elem *const gate = b.gate_up, *const up = b.gate_up + inner;
    const Elem* const dactivated = c_.b.dactivated;
    args.dy = view(dactivated, n, inner);
    args.a = {gate, {n, inner}, {2 * inner, 1}};
    args.b = {up, {n, inner}, {2 * inner, 1}};
    args.da = {b.gate_up, {n, inner}, {2 * inner, 1}};
    args.db = {b.gate_up + inner, {n, inner}, {2 * inner, 1}};
    require(c_.ops.run(args, c_.stream), what);
  };
  if (c_.config.activation == Activation::kSwiglu)
    return run(swiglu::Backward<P>{}, "swiglu backward");
  geglu::Backward<P> args;
  args.approximate = approximate_of(c_.config);
  run(args, "geglu backward");
}

template class ModelOps<F32>;
template class ModelOps<BF16>;

}  // namespace tigon::convergence
