// SPDX-License-Identifier: Apache-2.0
// What a layer computes between its norms and its matrix products: rotation, attention, activation,
// residual sums.
#pragma once
#include "convergence/model_context.h"

namespace tigon::convergence {

template <class P>
class ModelOps {
 public:
  using Elem = typename P::Elem;
  using Layer = LayerBuffers<Elem>;
  explicit ModelOps(ModelContext<P>& context) : c_(context) {}

  void rotate(Elem* qkv) const;
  void rotate_back(Elem* dqkv) const;
  void attend(const Layer& b) const;
  void attend_backward(const Layer& b) const;
  void activate(const Layer& b) const;
  // The gradients take the place of gate and up.
  void activate_backward(const Layer& b) const;
  void add_residual(const Elem* x, const Elem* branch, Elem* y) const;

 private:
  ModelContext<P>& c_;
};

}  // namespace tigon::convergence
