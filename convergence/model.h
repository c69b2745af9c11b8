// A small LLaMA with its backward pass written by hand, over a table of ops; one arena of memory.
#pragma once
#include <cstdint>
#include <vector>

#include "convergence/attention.h"
#include "convergence/checkpoint.h"
#include "convergence/memory_plan.h"
#include "convergence/model_config.h"
#include "convergence/ops.h"
#include "convergence/parameter_layout.h"
#include "convergence/text_data.h"
#include "kernels/device/gemm.h"
#include "kernels/device/runtime.h"

namespace tigon::convergence {

// Optimizer settings of one step.
struct UpdateSettings {
  int64_t step;  // from 0
  double rate;
};

// Norm of the gradient before clipping and loss before the update.
struct StepResult {
  double loss, grad_norm;
};

template <class P>
class Model {
 public:
  using Elem = typename P::Elem;

  // Plans and allocates the arena. Throws DeviceOutOfMemory.
  Model(const ModelConfig& config, const Ops<P>& ops);

  // Chooses algorithms for the matrix products of such a model, once per process; takes and frees
  // memory on the way. Nothing on a CPU.
  static void tune(const ModelConfig& config, const Ops<P>& ops);

  // Bytes of the arena, which is not allocated.
  static int64_t plan_bytes(const ModelConfig& config, const Ops<P>& ops);

  // fp32 master weights in the order of ParameterLayout.
  void set_weights(const std::vector<float>& master);
  std::vector<float> weights() const;
  // Of the last step, before clipping.
  std::vector<float> gradients() const;

  // All that a training consists of beside its data: what a checkpoint holds.
  std::vector<StateTensor> state() const;

  // One step on a batch of config.batch sequences.
  StepResult step(const Batch& batch, const UpdateSettings& update);
  // Mean loss in nats, without gradients.
  double evaluate(const Batch& batch);
  // What the head reads: the last layer's output after the final norm, [tokens, hidden].
  std::vector<float> hidden_states(const Batch& batch);

  int64_t planned_bytes() const { return static_cast<int64_t>(arena_.bytes()); }
  const ParameterLayout& layout() const { return layout_; }

 private:
  // Activations that backward reads.
  struct LayerBuffers {
    float *rstd1, *rstd2, *lse;
    Elem *normed1, *qkv, *attention, *middle, *normed2, *gate_up, *activated;
  };
  struct Buffers {
    Elem *weight, *gradient;
    float *master, *m, *v;
    int64_t *input, *target;
    int32_t *order, *first;
    float *cos, *sin;
    std::vector<Elem*> x;  // input of each layer, then of the final norm
    std::vector<LayerBuffers> layers;
    Elem *branch, *normed, *dnormed, *dx, *dbranch, *dactivated, *dqkv;
    float *rstd, *delta, *dnorm, *row_lse, *loss, *partial, *square;
    Scratch norm_scratch, gemm_scratch, loss_scratch;
  };

  struct PlanOnly {};
  Model(const ModelConfig& config, const Ops<P>& ops, PlanOnly);

  // The phases of a step, which are the lifetimes of the plan.
  int last_layer() const { return config_.layers - 1; }
  int loss_phase() const { return config_.layers; }
  int backward_phase(int layer) const { return 2 * config_.layers - layer; }
  int update_phase() const { return 2 * config_.layers + 1; }

  Buffers take_buffers(MemoryPlan& plan) const;
  LayerBuffers take_layer(MemoryPlan& plan, int layer) const;
  void take_scratch(MemoryPlan& plan, Buffers& b) const;
  std::vector<Gemm> layer_products(const Buffers& b) const;
  void upload_angles();
  void upload(const Batch& batch);

  void forward();
  void forward_layer(int layer);
  void backward();
  void backward_layer(int layer);
  void loss_and_head_gradient();
  void update(const UpdateSettings& settings);

  rms_norm::Forward<P> norm_args(const Elem* x, const Elem* w, Elem* y, float* rstd) const;
  rms_norm::Backward<P> norm_gradient_args(const Buffers& b, const Elem* dy, const Elem* x,
                                           const Elem* w, const float* rstd, Elem* dx) const;
  void norm_backward(Elem* dy, const Elem* x, int64_t weight, const float* rstd, Elem* dx);
  linear_cross_entropy::Forward<P> loss_args(const Buffers& b) const;
  linear_cross_entropy::ForwardBackward<P> loss_gradient_args(const Buffers& b) const;
  AttentionShape attention_shape() const;

  // y = x w^T, dx = dy w and dw = dy^T x of a matrix w [out, in] for all tokens of a batch.
  Gemm product(int64_t out, int64_t in, const Elem* x, const Elem* w, Elem* y) const;
  Gemm input_gradient(int64_t out, int64_t in, const Elem* dy, const Elem* w, Elem* dx) const;
  Gemm weight_gradient(int64_t out, int64_t in, const Elem* dy, const Elem* x, Elem* dw) const;
  std::vector<Gemm> products_of(int64_t out, int64_t in, const Buffers& b) const;
  void multiply(const Gemm& problem);
  void linear_backward(int64_t out, int64_t in, const Elem* dy, const Elem* x, int64_t weight,
                       Elem* dx);

  int64_t tokens() const { return config_.tokens_per_step(); }
  int64_t hidden() const { return config_.hidden; }
  const Elem* weight(int64_t offset) const { return b_.weight + offset; }
  Elem* gradient(int64_t offset) const { return b_.gradient + offset; }

  ModelConfig config_;
  Ops<P> ops_;
  ParameterLayout layout_;
  MemoryPlan plan_;
  DeviceBuffer arena_;
  Buffers b_;
  Stream stream_ = nullptr;
};

}  // namespace tigon::convergence
