// SPDX-License-Identifier: Apache-2.0
// The norms of a model: of the residual stream, and of each head of q and k.
#pragma once
#include "convergence/model_context.h"

namespace tigon::convergence {

template <class P>
class ModelNorms {
 public:
  using Elem = typename P::Elem;
  explicit ModelNorms(ModelContext<P>& context) : c_(context) {}

  void forward(const Elem* x, const NormOffsets& w, Elem* y, const NormStatistics& s) const;
  // dx may be dy.
  void backward(Elem* dy, const Elem* x, const NormOffsets& w, const NormStatistics& s,
                Elem* dx) const;

  // Of the heads of q and k in a layer's qkv; with qk_norm only.
  void forward_heads(int layer) const;
  void backward_heads(int layer) const;

  // Bytes of scratch that backward needs.
  size_t workspace() const;

 private:
  rms_norm::Forward<P> rms_args(const Elem* x, const Elem* w, Elem* y, float* rstd) const;
  rms_norm::Backward<P> rms_gradient_args(const Elem* dy, const Elem* x, const Elem* w,
                                          const float* rstd, Elem* dx) const;
  layer_norm::Forward<P> layer_norm_args(const Elem* x, const NormOffsets& w, Elem* y,
                                         const NormStatistics& s) const;
  layer_norm::Backward<P> layer_norm_gradient_args(const Elem* dy, const Elem* x,
                                                   const NormOffsets& w, const NormStatistics& s,
                                                   Elem* dx) const;

  // Heads of q, then of k: their number, their rows within rows of q, k, v, and their weight.
  int heads() const { return c_.config.heads + c_.config.kv_heads; }
  View<Elem, 2> head_rows(Elem* qkv, int head) const;
  int64_t head_weight(int layer, int head) const;
  rms_norm::Forward<P> head_args(int layer, int head) const;
  rms_norm::Backward<P> head_gradient_args(int layer, int head) const;

  ModelContext<P>& c_;
};

}  // namespace tigon::convergence
