// SPDX-License-Identifier: Apache-2.0
// The losses of a model: of the backbone's head and of Medusa heads, each over the full vocabulary.
// Heads are numbered: -1 is the backbone's, Medusa's count from 0.
#pragma once
#include "convergence/model_context.h"
#include "convergence/model_norms.h"
#include "convergence/model_ops.h"
#include "convergence/model_products.h"
#include "convergence/text_data.h"

namespace tigon::convergence {

template <class P>
class ModelLosses {
 public:
  explicit ModelLosses(ModelContext<P>& context)
      : c_(context), norms_(context), ops_(context), products_(context) {}

  // Weights of the Medusa heads' losses, once; their targets, for each batch.
  void upload_scales() const;
  void upload_targets(const Batch& batch) const;

  // Losses without gradients.
  void evaluate() const;
  // Losses, the gradients of the heads and that of the final norm's input.
  void run_with_gradients() const;
  // Of the last run: the sum over the heads that are trained.
  double total() const;

  size_t workspace() const;
  // Chooses algorithms for the products in the loss.
  void tune() const;

 private:
  using Elem = typename P::Elem;

  // The first head that is trained.
  int first_head() const { return c_.config.frozen ? 0 : -1; }
  linear_cross_entropy::Forward<P> args(int head) const;
  linear_cross_entropy::ForwardBackward<P> gradient_args(int head) const;
  void gradient(int head) const;
  void medusa_input(int head) const;
  void medusa_gradient(int head) const;
  void medusa_activation_gradient() const;

  ModelContext<P>& c_;
  ModelNorms<P> norms_;
  ModelOps<P> ops_;
  ModelProducts<P> products_;
};

}  // namespace tigon::convergence
