// SPDX-License-Identifier: Apache-2.0
// Norms of a model with their arguments.
#include "convergence/model_norms.h"

#include <algorithm>

#include "convergence/kernels.h"
#include "convergence/require.h"

namespace tigon::convergence {

// ---- of the residual stream ---------------------------------------------------------------------

template <class P>
rms_norm::Forward<P> ModelNorms<P>::rms_args(const Elem* x, const Elem* w, Elem* y,
                                             float* rstd) const {
  const int64_t tokens = c_.tokens(), hidden = c_.hidden();
  rms_norm::Forward<P> args;
  args.x = view(x, tokens, hidden);
  args.w = view(w, hidden);
  args.y = view(y, tokens, hidden);
  args.rstd = view(rstd, tokens);
  args.eps = c_.config.norm_eps;
  args.offset = c_.config.norm_offset;
  if (c_.config.norm_offset != 0.0f) args.casting = rms_norm::Casting::kGemma;
  return args;
}

template <class P>
rms_norm::Backward<P> ModelNorms<P>::rms_gradient_args(const Elem* dy, const Elem* x, const Elem* w,
                                                       const float* rstd, Elem* dx) const {
  const int64_t tokens = c_.tokens(), hidden = c_.hidden();
  rms_norm::Backward<P> args;
  args.dy = view(dy, tokens, hidden);
  args.x = view(x, tokens, hidden);
  args.w = view(w, hidden);
  args.rstd = view(rstd, tokens);
  args.dx = view(dx, tokens, hidden);
  args.dw = view(c_.b.dnorm, hidden);
  args.scratch = c_.b.norm_scratch;
  args.offset = c_.config.norm_offset;
  return args;
}

template <class P>
layer_norm::Forward<P> ModelNorms<P>::layer_norm_args(const Elem* x, const NormOffsets& w, Elem* y,
                                                      const NormStatistics& s) const {
  const int64_t tokens = c_.tokens(), hidden = c_.hidden();
  layer_norm::Forward<P> args;
  args.x = view(x, tokens, hidden);
  args.w = view(c_.weight(w.weight), hidden);
  args.b = view(c_.weight(w.bias), hidden);
  args.y = view(y, tokens, hidden);
  args.mean = view(s.mean, tokens);
  args.rstd = view(s.rstd, tokens);
  args.eps = c_.config.norm_eps;
  return args;
}

template <class P>
layer_norm::Backward<P> ModelNorms<P>::layer_norm_gradient_args(const Elem* dy, const Elem* x,
                                                                const NormOffsets& w,
                                                                const NormStatistics& s,
                                                                Elem* dx) const {
  const int64_t tokens = c_.tokens(), hidden = c_.hidden();
  const float *const mean = s.mean, *const rstd = s.rstd;
  layer_norm::Backward<P> args;
  args.dy = view(dy, tokens, hidden);
  args.x = view(x, tokens, hidden);
  args.w = view(c_.weight(w.weight), hidden);
  args.mean = view(mean, tokens);
  args.rstd = view(rstd, tokens);
  args.dx = view(dx, tokens, hidden);
  args.dw = view(c_.b.dnorm, hidden);
  args.db = view(c_.b.dnorm + hidden, hidden);
  args.scratch = c_.b.norm_scratch;
  return args;
}

template <class P>
void ModelNorms<P>::forward(const Elem* x, const NormOffsets& w, Elem* y,
                            const NormStatistics& s) const {
  const PartRange range = c_.part(Part::kNorms);
  if (c_.config.norm == NormKind::kRmsNorm)
    require(c_.ops.run(rms_args(x, c_.weight(w.weight), y, s.rstd), c_.stream), "rms_norm forward");
  else
    require(c_.ops.run(layer_norm_args(x, w, y, s), c_.stream), "layer_norm forward");
}

template <class P>
void ModelNorms<P>::backward(Elem* dy, const Elem* x, const NormOffsets& w, const NormStatistics& s,
                             Elem* dx) const {
  const PartRange range = c_.part(Part::kNorms);
  const auto round = [&](const float* sum, int64_t parameter) {
    require(round_to(sum, c_.gradient(parameter), c_.hidden(), c_.stream),
            "rounding of a norm gradient");
  };
  if (c_.config.norm == NormKind::kRmsNorm) {
    require(c_.ops.run(rms_gradient_args(dy, x, c_.weight(w.weight), s.rstd, dx), c_.stream),
            "rms_norm backward");
  } else {
    require(c_.ops.run(layer_norm_gradient_args(dy, x, w, s, dx), c_.stream),
            "layer_norm backward");
    round(c_.b.dnorm + c_.hidden(), w.bias);
  }
  round(c_.b.dnorm, w.weight);
}

// ---- of the heads of q and k --------------------------------------------------------------------

template <class P>
View<typename P::Elem, 2> ModelNorms<P>::head_rows(Elem* qkv, int head) const {
  return {qkv + int64_t{head} * c_.config.head_size,
          {c_.tokens(), c_.config.head_size},
          {c_.config.qkv_size(), 1}};
}

template <class P>
int64_t ModelNorms<P>::head_weight(int layer, int head) const {
  const ParameterLayout::Block& w = c_.layout.blocks[static_cast<size_t>(layer)];
  return head < c_.config.heads ? w.q_norm : w.k_norm;
}

template <class P>
rms_norm::Forward<P> ModelNorms<P>::head_args(int layer, int head) const {
  const LayerBuffers<Elem>& b = c_.layer(layer);
  const View<Elem, 2> x = head_rows(b.raw_qkv, head);
  rms_norm::Forward<P> args;
  args.x = {x.data, {x.shape[0], x.shape[1]}, {x.stride[0], 1}};
  args.w = view(c_.weight(head_weight(layer, head)), c_.config.head_size);
  args.y = head_rows(b.qkv, head);
  args.rstd = view(b.head_rstd + head * c_.tokens(), c_.tokens());
  args.eps = c_.config.norm_eps;
  args.offset = c_.config.norm_offset;
  if (c_.config.norm_offset != 0.0f) args.casting = rms_norm::Casting::kGemma;
  return args;
}

template <class P>
rms_norm::Backward<P> ModelNorms<P>::head_gradient_args(int layer, int head) const {
  const LayerBuffers<Elem>& b = c_.layer(layer);
  const View<Elem, 2> dy = head_rows(c_.b.dqkv, head), x = head_rows(b.raw_qkv, head);
  const float* const rstd = b.head_rstd + head * c_.tokens();
  const int64_t size = c_.config.head_size;
  rms_norm::Backward<P> args;
  args.dy = {dy.data, {dy.shape[0], dy.shape[1]}, {dy.stride[0], 1}};
  args.x = {x.data, {x.shape[0], x.shape[1]}, {x.stride[0], 1}};
  args.w = view(c_.weight(head_weight(layer, head)), size);
  args.rstd = view(rstd, c_.tokens());
  args.dx = dy;
  args.dw = view(c_.b.head_dnorm + int64_t{head} * size, size);
  args.scratch = c_.b.norm_scratch;
  args.offset = c_.config.norm_offset;
  return args;
}

template <class P>
void ModelNorms<P>::forward_heads(int layer) const {
  const PartRange range = c_.part(Part::kNorms);
  const LayerBuffers<Elem>& b = c_.layer(layer);
  const int64_t elements = c_.tokens() * c_.config.qkv_size();
  device_copy(b.raw_qkv, b.qkv, static_cast<size_t>(elements) * sizeof(Elem), c_.stream);
  for (int head = 0; head < heads(); ++head)
    require(c_.ops.run(head_args(layer, head), c_.stream), "rms_norm forward of a head");
}

template <class P>
void ModelNorms<P>::backward_heads(int layer) const {
  const PartRange range = c_.part(Part::kNorms);
  for (int head = 0; head < heads(); ++head)
    require(c_.ops.run(head_gradient_args(layer, head), c_.stream), "rms_norm backward of a head");
  const ParameterLayout::Block& w = c_.layout.blocks[static_cast<size_t>(layer)];
  const int64_t size = c_.config.head_size;
  const auto sum = [&](int first, int count, int64_t parameter) {
    require(
        sum_rows(c_.b.head_dnorm + first * size, count, size, c_.gradient(parameter), c_.stream),
        "sum of norm gradients");
  };
  sum(0, c_.config.heads, w.q_norm);
  sum(c_.config.heads, c_.config.kv_heads, w.k_norm);
}

template <class P>
size_t ModelNorms<P>::workspace() const {
  Elem* const x = c_.b.dx;
  const NormStatistics& s = c_.b.final_norm;
  const size_t bytes =
      c_.config.norm == NormKind::kRmsNorm
          ? c_.ops.workspace(rms_gradient_args(x, x, c_.b.weight, s.rstd, x))
          : c_.ops.workspace(layer_norm_gradient_args(x, x, c_.layout.final_norm, s, x));
  if (!c_.config.qk_norm) return bytes;
  return std::max(bytes, c_.ops.workspace(head_gradient_args(0, 0)));
}

template class ModelNorms<F32>;
template class ModelNorms<BF16>;

}  // namespace tigon::convergence
