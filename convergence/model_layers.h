// SPDX-License-Identifier: Apache-2.0
// Forward and backward of a pre-norm decoder layer by layer:
//   h = x + attention(rope(norm(x) Wqkv)) Wo;   x' = h + act(norm(h) Wgate, norm(h) Wup) Wdown
#pragma once
#include "convergence/model_context.h"
#include "convergence/model_norms.h"
#include "convergence/model_ops.h"
#include "convergence/model_products.h"

namespace tigon::convergence {

template <class P>
class ModelLayers {
 public:
  explicit ModelLayers(ModelContext<P>& context)
      : c_(context), norms_(context), ops_(context), products_(context) {}

  // From the token ids to the final norm's output.
  void forward() const;
  // From the gradient of the final norm's input to that of the embedding.
  void backward() const;

 private:
  using Elem = typename P::Elem;

  void embed() const;
  void embed_backward() const;
  void attention_branch(int layer) const;  // up to its residual add
  void mlp_branch(int layer) const;        // up to the last product
  void forward_layer(int layer) const;
  void backward_mlp(int layer) const;
  void backward_attention(int layer) const;

  const ParameterLayout::Block& weights(int layer) const {
    return c_.layout.blocks[static_cast<size_t>(layer)];
  }
  Elem* input(int layer) const { return c_.b.x[static_cast<size_t>(layer)]; }

  ModelContext<P>& c_;
  ModelNorms<P> norms_;
  ModelOps<P> ops_;
  ModelProducts<P> products_;
};

}  // namespace tigon::convergence
