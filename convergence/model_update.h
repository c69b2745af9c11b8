// SPDX-License-Identifier: Apache-2.0
// What a step does with its gradients: accumulation over batches, clipping, AdamW.
#pragma once
#include "convergence/model_context.h"

namespace tigon::convergence {

// Optimizer settings of one step.
struct UpdateSettings {
  int64_t step;  // from 0
  double rate;
};

template <class P>
class ModelUpdate {
 public:
  explicit ModelUpdate(ModelContext<P>& context) : c_(context) {}

  // What changes from step to step, read by the launches from device memory.
  void upload_schedule(const UpdateSettings& settings) const;
  void accumulate_gradients(bool first, bool last) const;
  void update() const;
  // Norm of the gradient before clipping.
  double gradient_norm() const;

 private:
  using Elem = typename P::Elem;
  // Parameters [first, last) with the rates of `schedule`.
  void update_range(int64_t first, int64_t last, const float* schedule) const;

  ModelContext<P>& c_;
};

}  // namespace tigon::convergence
