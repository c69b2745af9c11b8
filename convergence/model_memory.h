// SPDX-License-Identifier: Apache-2.0
// Which buffers a training step has and in which phases they live.
#pragma once
#include "convergence/memory_plan.h"
#include "convergence/model_context.h"

namespace tigon::convergence {

// Takes the buffers of a step from a plan: placeholders at first, addresses once it is resolved.
template <class P>
class BufferPlanner {
 public:
  BufferPlanner(ModelContext<P>& context, MemoryPlan& plan)
      : c_(context), plan_(plan), b_(context.b) {}

  void take_all();

 private:
  using Elem = typename P::Elem;

  void take_state();
  void take_inputs();
  void take_activations();
  void take_gradients();
  void take_medusa();
  void take_scratch();
  NormStatistics take_statistics(int first, int last);
  LayerBuffers<Elem> take_layer(int first, int last);
  Scratch take_bytes(Part part, size_t bytes, int first, int last);
  // The last phase that runs forward's launches of a layer: recomputation repeats them.
  int last_forward() const;

  ModelContext<P>& c_;
  MemoryPlan& plan_;
  ModelBuffers<Elem>& b_;
};

}  // namespace tigon::convergence
