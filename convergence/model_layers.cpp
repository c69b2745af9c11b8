// SPDX-License-Identifier: Apache-2.0
// Layers forward and backward.
#include "convergence/model_layers.h"

#include "convergence/kernels.h"
#include "convergence/require.h"

namespace tigon::convergence {

template <class P>
void ModelLayers<P>::embed() const {
  const PartRange range = c_.part(Part::kOther);
  require(gather_rows(c_.weight(c_.layout.embedding), c_.b.input, c_.b.x.front(), c_.tokens(),
                      c_.hidden(), c_.stream),
          "embedding");
}

// A tied table already holds the head's gradient; rows of tokens that do not occur keep it.
template <class P>
void ModelLayers<P>::embed_backward() const {
  const PartRange range = c_.part(Part::kOther);
  if (!c_.config.tied)
    device_fill(c_.gradient(c_.layout.embedding), 0,
                static_cast<size_t>(c_.config.vocabulary * c_.hidden()) * sizeof(Elem), c_.stream);
  const ScatterRows<Elem> scatter{
      c_.b.dx,     c_.b.input, c_.b.order, c_.b.first, c_.gradient(c_.layout.embedding),
      c_.tokens(), c_.hidden()};
  require(scatter_rows(scatter, c_.stream), "embedding gradient");
}

template <class P>
void ModelLayers<P>::attention_branch(int l) const {
  const LayerBuffers<Elem>& b = c_.layer(l);
  const ParameterLayout::Block& w = weights(l);
  Elem* const x = input(l);
  norms_.forward(x, w.norm1, b.normed1, b.norm1);
  products_.forward(c_.config.qkv_size(), c_.hidden(), b.normed1, w.qkv, b.qkv);
  if (c_.config.qk_norm) norms_.forward_heads(l);
  ops_.rotate(b.qkv);
  ops_.attend(b);
  products_.forward(c_.hidden(), c_.config.q_size(), b.attention, w.o, c_.b.branch);
  ops_.add_residual(x, c_.b.branch, b.middle);
}

template <class P>
void ModelLayers<P>::mlp_branch(int l) const {
  const LayerBuffers<Elem>& b = c_.layer(l);
  const ParameterLayout::Block& w = weights(l);
  norms_.forward(b.middle, w.norm2, b.normed2, b.norm2);
  const int64_t inner = c_.config.intermediate;
  products_.forward(2 * inner, c_.hidden(), b.normed2, w.gate_up, b.gate_up);
  ops_.activate(b);
}

template <class P>
void ModelLayers<P>::forward_layer(int l) const {
  c_.enter(l);
  const LayerBuffers<Elem>& b = c_.layer(l);
  const ParameterLayout::Block& w = weights(l);
  attention_branch(l);
  mlp_branch(l);
  products_.forward(c_.hidden(), c_.config.intermediate, b.activated, w.down, c_.b.branch);
  ops_.add_residual(b.middle, c_.b.branch, input(l + 1));
}

template <class P>
void ModelLayers<P>::forward() const {
  embed();
  for (int l = 0; l < c_.config.layers; ++l) forward_layer(l);
  c_.enter(c_.phases.loss());
  norms_.forward(c_.b.x.back(), c_.layout.final_norm, c_.b.normed, c_.b.final_norm);
}

// dx holds the gradient of the layer's output, then that of its middle.
template <class P>
void ModelLayers<P>::backward_mlp(int l) const {
  const LayerBuffers<Elem>& b = c_.layer(l);
  const ParameterLayout::Block& w = weights(l);
  const int64_t inner = c_.config.intermediate;
  products_.backward(c_.hidden(), inner, c_.b.dx, b.activated, w.down, c_.b.dactivated);
  ops_.activate_backward(b);
  products_.backward(2 * inner, c_.hidden(), b.gate_up, b.normed2, w.gate_up, c_.b.dbranch);
  norms_.backward(c_.b.dbranch, b.middle, w.norm2, b.norm2, c_.b.dbranch);
  ops_.add_residual(c_.b.dx, c_.b.dbranch, c_.b.dx);
}

// dx holds the gradient of the layer's middle, then that of its input.
template <class P>
void ModelLayers<P>::backward_attention(int l) const {
  const LayerBuffers<Elem>& b = c_.layer(l);
  const ParameterLayout::Block& w = weights(l);
  products_.backward(c_.hidden(), c_.config.q_size(), c_.b.dx, b.attention, w.o, c_.b.dbranch);
  ops_.attend_backward(b);
  ops_.rotate_back(c_.b.dqkv);
  if (c_.config.qk_norm) norms_.backward_heads(l);
  products_.backward(c_.config.qkv_size(), c_.hidden(), c_.b.dqkv, b.normed1, w.qkv, c_.b.dbranch);
  norms_.backward(c_.b.dbranch, input(l), w.norm1, b.norm1, c_.b.dbranch);
  ops_.add_residual(c_.b.dx, c_.b.dbranch, c_.b.dx);
}

template <class P>
void ModelLayers<P>::backward() const {
  for (int l = c_.phases.last_layer(); l >= 0; --l) {
    c_.enter(c_.phases.backward(l));
    if (c_.config.recompute) {
      attention_branch(l);
      mlp_branch(l);
    }
    backward_mlp(l);
    backward_attention(l);
  }
  embed_backward();
}

template class ModelLayers<F32>;
template class ModelLayers<BF16>;

}  // namespace tigon::convergence
