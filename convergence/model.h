// SPDX-License-Identifier: Apache-2.0
// A decoder with its backward pass written by hand, over a table of ops; one arena of memory.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convergence/checkpoint.h"
#include "convergence/memory_plan.h"
#include "convergence/model_context.h"
#include "convergence/model_layers.h"
#include "convergence/model_loss.h"
#include "convergence/model_products.h"
#include "convergence/model_update.h"
#include "convergence/step_graph.h"
#include "convergence/text_data.h"
#include "kernels/device/owned_stream.h"

namespace tigon::convergence {

// The arena of a step, planned.
struct ArenaPlan {
  int64_t bytes = 0;
  std::vector<ByPart<int64_t>> phases;  // bytes in use in each; the others of `bytes` are free
  int loss_phase = 0;                   // after forward, before backward
};

// Norm of the gradient before clipping and loss before the update.
struct StepResult {
  double loss, grad_norm;
};

template <class P>
class Model {
 public:
  using Elem = typename P::Elem;

  // Prepares attention, plans and allocates the arena. Throws DeviceOutOfMemory.
  Model(const ModelConfig& config, const Ops<P>& ops);

  // Chooses algorithms for the matrix products of such a model, once per process; takes and frees
  // memory on the way. Nothing on a CPU.
  static void tune(const ModelConfig& config, const Ops<P>& ops);

  // The arena, which is not allocated. Its scratch of attention is an estimate until there has been
  // such a model.
  static ArenaPlan plan_arena(const ModelConfig& config, const Ops<P>& ops);

  // Which attention such a model has (AttentionPlan::by).
  static std::string attention_of(const ModelConfig& config);

  // fp32 master weights in the order of ParameterLayout.
  void set_weights(const std::vector<float>& master);
  std::vector<float> weights() const;
  // Of the last step, before clipping.
  std::vector<float> gradients() const;

  // All that a training consists of beside its data: what a checkpoint holds.
  std::vector<StateTensor> state() const;

  // One step on config.accumulate batches of config.batch sequences. On a GPU it is launched once
  // and then captured and replayed (StepGraphs); with a meter, which measures its parts, it is
  // launched.
  StepResult step(const std::vector<Batch>& batches, const UpdateSettings& update,
                  PartMeter* meter = nullptr);
  StepResult step(const Batch& batch, const UpdateSettings& update) {
    return step(std::vector<Batch>{batch}, update);
  }
  // The matrix products of the last step with a meter; its gradients and activations are
  // overwritten.
  ProductsAlone products_alone() { return ModelProducts<P>(c_).measure_alone(); }
  // Mean loss in nats, without gradients. With Medusa heads, what is trained: the backbone's unless
  // it is frozen, and of head k (from 0) 0.8^(k + 1) times its own.
  double evaluate(const Batch& batch);
  // What the head reads: the last layer's output after the final norm, [tokens, hidden].
  std::vector<float> hidden_states(const Batch& batch);

  // How the launches of a step reach the device: "host executor", or StepGraphs::how().
  std::string launches() const;

  int64_t planned_bytes() const { return static_cast<int64_t>(arena_.bytes()); }
  const ParameterLayout& layout() const { return c_.layout; }

 private:
  static const ModelConfig& with_attention_prepared(const ModelConfig& config);
  struct PlanOnly {};
  // Buffers are placeholders.
  Model(const ModelConfig& config, const Ops<P>& ops, PlanOnly);

  void upload_angles();
  void upload(const Batch& batch);
  StepResult run_step(const std::vector<Batch>& batches, const UpdateSettings& update);
  // The launches of one batch: gradients, and after the last one of a step the update.
  void run_pass(bool first, bool last);
  void launch_pass(bool first, bool last);

  ModelContext<P> c_;
  MemoryPlan plan_;
  DeviceBuffer arena_;
  std::optional<OwnedStream> own_stream_;  // none of a model that is only planned
  StepGraphs graphs_;
  ModelLayers<P> layers_{c_};
  ModelLosses<P> losses_{c_};
  ModelUpdate<P> update_{c_};
};

}  // namespace tigon::convergence
