// Forward and backward of a pre-norm decoder layer by layer:
//   h = x + attention(rope(norm(x) Wqkv)) Wo;   x' = h + act(norm(h) Wgate, norm(h) Wup) Wdown
#include "convergence/kernels.h"
#include "convergence/model.h"
#include "convergence/require.h"

namespace tigon::convergence {

template <class P>
AttentionShape Model<P>::attention_shape(const ModelConfig& c) {
  return {c.batch, c.sequence, c.heads, c.kv_heads, c.head_size, c.attention_softcap};
}

template <class P>
void Model<P>::attend(const LayerBuffers& b) {
  const PartRange range = part(Part::kAttention);
  require(attention_forward(AttentionForward<P>{attention_shape(), b.qkv, b.attention, b.lse,
                                                b_.attention_scratch},
                            stream_),
          "attention forward");
}

template <class P>
void Model<P>::attend_backward(const LayerBuffers& b) {
  const PartRange range = part(Part::kAttention);
  require(attention_backward(AttentionBackward<P>{attention_shape(), b.qkv, b.attention, b_.dbranch,
                                                  b.lse, b_.dqkv, b_.dattention_scratch},
                             stream_),
          "attention backward");
}

template <class P>
void Model<P>::add_residual(const Elem* x, const Elem* branch, Elem* y) {
  const PartRange range = part(Part::kOther);
  require(add(x, branch, y, tokens() * hidden(), stream_), "residual add");
}

template <class P>
void Model<P>::embed() {
  const PartRange range = part(Part::kOther);
  require(
      gather_rows(weight(layout_.embedding), b_.input, b_.x.front(), tokens(), hidden(), stream_),
      "embedding");
}

// A tied table already holds the head's gradient; rows of tokens that do not occur keep it.
template <class P>
void Model<P>::embed_backward() {
  const PartRange range = part(Part::kOther);
  if (!config_.tied)
    device_fill(gradient(layout_.embedding), 0,
                static_cast<size_t>(config_.vocabulary * hidden()) * sizeof(Elem), stream_);
  const ScatterRows<Elem> scatter{
      b_.dx, b_.input, b_.order, b_.first, gradient(layout_.embedding), tokens(), hidden()};
  require(scatter_rows(scatter, stream_), "embedding gradient");
}

template <class P>
void Model<P>::attention_branch(int l) {
  const LayerBuffers& b = layer_buffers(l);
  const ParameterLayout::Block& w = layout_.blocks[static_cast<size_t>(l)];
  Elem* const x = b_.x[static_cast<size_t>(l)];
  norm(x, w.norm1, b.normed1, b.norm1);
  multiply(product(config_.qkv_size(), hidden(), b.normed1, weight(w.qkv), b.qkv));
  if (config_.qk_norm) head_norms(b, w);
  rotate(b.qkv);
  attend(b);
  multiply(product(hidden(), config_.q_size(), b.attention, weight(w.o), b_.branch));
  add_residual(x, b_.branch, b.middle);
}

template <class P>
void Model<P>::mlp_branch(int l) {
  const LayerBuffers& b = layer_buffers(l);
  const ParameterLayout::Block& w = layout_.blocks[static_cast<size_t>(l)];
  norm(b.middle, w.norm2, b.normed2, b.norm2);
  multiply(product(int64_t{2} * config_.intermediate, hidden(), b.normed2, weight(w.gate_up),
                   b.gate_up));
  activate(b);
}

template <class P>
void Model<P>::forward_layer(int l) {
  enter(l);
  const LayerBuffers& b = layer_buffers(l);
  const ParameterLayout::Block& w = layout_.blocks[static_cast<size_t>(l)];
  attention_branch(l);
  mlp_branch(l);
  multiply(product(hidden(), config_.intermediate, b.activated, weight(w.down), b_.branch));
  add_residual(b.middle, b_.branch, b_.x[static_cast<size_t>(l) + 1]);
}

template <class P>
void Model<P>::forward() {
  embed();
  for (int l = 0; l < config_.layers; ++l) forward_layer(l);
  enter(loss_phase());
  norm(b_.x.back(), layout_.final_norm, b_.normed, b_.final_norm);
}

// dx holds the gradient of the layer's output, then that of its middle.
template <class P>
void Model<P>::backward_mlp(int l) {
  const LayerBuffers& b = layer_buffers(l);
  const ParameterLayout::Block& w = layout_.blocks[static_cast<size_t>(l)];
  const int64_t inner = config_.intermediate;
  linear_backward(hidden(), inner, b_.dx, b.activated, w.down, b_.dactivated);
  activate_backward(b);
  linear_backward(2 * inner, hidden(), b.gate_up, b.normed2, w.gate_up, b_.dbranch);
  norm_backward(b_.dbranch, b.middle, w.norm2, b.norm2, b_.dbranch);
  add_residual(b_.dx, b_.dbranch, b_.dx);
}

// dx holds the gradient of the layer's middle, then that of its input.
template <class P>
void Model<P>::backward_attention(int l) {
  const LayerBuffers& b = layer_buffers(l);
  const ParameterLayout::Block& w = layout_.blocks[static_cast<size_t>(l)];
  linear_backward(hidden(), config_.q_size(), b_.dx, b.attention, w.o, b_.dbranch);
  attend_backward(b);
  rotate_back(b_.dqkv);
  if (config_.qk_norm) head_norms_backward(l, w);
  linear_backward(config_.qkv_size(), hidden(), b_.dqkv, b.normed1, w.qkv, b_.dbranch);
  norm_backward(b_.dbranch, b_.x[static_cast<size_t>(l)], w.norm1, b.norm1, b_.dbranch);
  add_residual(b_.dx, b_.dbranch, b_.dx);
}

template <class P>
void Model<P>::backward() {
  for (int l = last_layer(); l >= 0; --l) {
    enter(backward_phase(l));
    if (config_.recompute) {
      attention_branch(l);
      mlp_branch(l);
    }
    backward_mlp(l);
    backward_attention(l);
  }
  embed_backward();
}

template class Model<F32>;
template class Model<BF16>;

}  // namespace tigon::convergence
