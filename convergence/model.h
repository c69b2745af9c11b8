// A decoder with its backward pass written by hand, over a table of ops; one arena of memory.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "convergence/attention.h"
#include "convergence/checkpoint.h"
#include "convergence/memory_plan.h"
#include "convergence/model_config.h"
#include "convergence/ops.h"
#include "convergence/parameter_layout.h"
#include "convergence/step_graph.h"
#include "convergence/step_parts.h"
#include "convergence/text_data.h"
#include "kernels/device/gemm.h"
#include "kernels/device/owned_stream.h"

namespace tigon::convergence {

// Optimizer settings of one step.
struct UpdateSettings {
  int64_t step;  // from 0
  double rate;
};

// The arena of a step, planned.
struct ArenaPlan {
  int64_t bytes = 0;
  std::vector<ByPart<int64_t>> phases;  // bytes in use in each; what is left of `bytes` is not
  int loss_phase = 0;                   // after forward, before backward
};

// The matrix products of linear layers in one step, each measured alone.
struct ProductsAlone {
  double flop = 0;
  double seconds = 0;
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
  // Those of the last step with a meter, each run again by itself, three times three in a row; its
  // gradients and activations are overwritten.
  ProductsAlone products_alone();
  // Mean loss in nats, without gradients. With Medusa heads, what is trained: the backbone's unless
  // it is frozen, and of head k (from 0) 0.8^(k + 1) times its own.
  double evaluate(const Batch& batch);
  // What the head reads: the last layer's output after the final norm, [tokens, hidden].
  std::vector<float> hidden_states(const Batch& batch);

  // How the launches of a step reach the device: "host executor", or StepGraphs::how().
  std::string launches() const;

  int64_t planned_bytes() const { return static_cast<int64_t>(arena_.bytes()); }
  const ParameterLayout& layout() const { return layout_; }

 private:
  // What forward keeps of a norm beside its output; mean of layer_norm only.
  struct NormStatistics {
    float *rstd, *mean;
  };
  // Activations that backward reads. raw_qkv and head_rstd with qk_norm only.
  struct LayerBuffers {
    NormStatistics norm1, norm2;
    float *lse, *head_rstd;
    Elem *normed1, *raw_qkv, *qkv, *attention, *middle, *normed2, *gate_up, *activated;
  };
  struct MedusaBuffers {
    Elem *before, *x, *dx, *dbefore;  // before the activation, the head's input, their gradients
    float* scale;                     // of each head's loss
    std::vector<int64_t*> target;     // of each head
  };
  struct Buffers {
    Elem *weight, *gradient;
    float *master, *m, *v, *accumulated;
    int64_t *input, *target;
    int32_t *order, *first;
    float *cos, *sin;
    std::vector<Elem*> x;  // input of each layer, then of the final norm
    std::vector<LayerBuffers> layers;
    MedusaBuffers medusa;
    Elem *branch, *normed, *dnormed, *dx, *dbranch, *dactivated, *dqkv;
    NormStatistics final_norm;
    float *dnorm, *head_dnorm, *row_lse, *loss, *partial, *square;
    float* schedule;  // of AdamW: of most parameters, then of the tables
    Scratch norm_scratch, gemm_scratch, loss_scratch, attention_scratch, dattention_scratch;
  };

  static const ModelConfig& with_attention_prepared(const ModelConfig& config);
  struct PlanOnly {};
  Model(const ModelConfig& config, const Ops<P>& ops, PlanOnly);

  // The phases of a step, which are the lifetimes of the plan.
  int last_layer() const { return config_.layers - 1; }
  int loss_phase() const { return config_.layers; }
  int backward_phase(int layer) const { return 2 * config_.layers - layer; }
  int update_phase() const { return 2 * config_.layers + 1; }

  // The last phase in which what forward keeps of a layer is read.
  int kept_until(int layer) const { return config_.frozen ? layer : backward_phase(layer); }

  Buffers take_buffers(MemoryPlan& plan) const;
  void take_state(MemoryPlan& plan, Buffers& b) const;
  void take_inputs(MemoryPlan& plan, Buffers& b) const;
  void take_activations(MemoryPlan& plan, Buffers& b) const;
  void take_gradients(MemoryPlan& plan, Buffers& b) const;
  void take_medusa(MemoryPlan& plan, Buffers& b) const;
  NormStatistics take_statistics(MemoryPlan& plan, int first, int last) const;
  LayerBuffers take_layer(MemoryPlan& plan, int first, int last) const;
  void take_scratch(MemoryPlan& plan, Buffers& b) const;
  std::vector<Gemm> layer_products(const Buffers& b) const;
  void upload_angles();
  void upload_medusa_scales();
  void upload_medusa_targets(const Batch& batch);
  void upload(const Batch& batch);

  // What is enqueued while the result lives belongs to that part of the step.
  PartRange part(Part part) const { return PartRange(meter_, part); }
  void enter(int phase) {
    if (meter_ != nullptr) meter_->enter(phase);
  }
  StepResult run_step(const std::vector<Batch>& batches, const UpdateSettings& update);

  // The launches of one batch: gradients, and after the last one of a step the update.
  void run_pass(bool first, bool last);
  void launch_pass(bool first, bool last);
  void forward();
  void attention_branch(int layer);  // up to its residual add
  void mlp_branch(int layer);        // up to the last product
  void forward_layer(int layer);
  void backward();
  void backward_mlp(int layer);
  void backward_attention(int layer);
  void embed();
  void attend(const LayerBuffers& b);
  void attend_backward(const LayerBuffers& b);
  void add_residual(const Elem* x, const Elem* branch, Elem* y);
  void embed_backward();
  void loss_and_head_gradient();
  void loss_gradient(int head);
  void medusa_input(int head);
  void medusa_gradient(int head);
  double total_loss();
  void accumulate_gradients(bool first, bool last);
  void upload_schedule(const UpdateSettings& settings);
  void update();

  rms_norm::Forward<P> rms_args(const Elem* x, const Elem* w, Elem* y, float* rstd) const;
  rms_norm::Backward<P> rms_gradient_args(const Buffers& b, const Elem* dy, const Elem* x,
                                          const Elem* w, const float* rstd, Elem* dx) const;
  layer_norm::Forward<P> layer_norm_args(const Elem* x, const NormOffsets& w, Elem* y,
                                         const NormStatistics& s) const;
  layer_norm::Backward<P> layer_norm_gradient_args(const Buffers& b, const Elem* dy, const Elem* x,
                                                   const NormOffsets& w, const NormStatistics& s,
                                                   Elem* dx) const;
  void norm(const Elem* x, const NormOffsets& w, Elem* y, const NormStatistics& s);
  void norm_backward(Elem* dy, const Elem* x, const NormOffsets& w, const NormStatistics& s,
                     Elem* dx);
  // The head `head` of q, and then of k, within rows of q, k, v.
  View<Elem, 2> head_rows(Elem* qkv, int head) const;
  void head_norms(const LayerBuffers& b, const ParameterLayout::Block& w);
  rms_norm::Backward<P> head_gradient_args(const Buffers& b, int buffers, int head,
                                           int64_t w) const;
  void head_norms_backward(int layer, const ParameterLayout::Block& w);
  void rotate(Elem* qkv);
  void rotate_back(Elem* dqkv);
  void activate(const LayerBuffers& b);
  void activate_backward(const LayerBuffers& b);
  // Of the backbone's head (-1) or of a Medusa head.
  linear_cross_entropy::Forward<P> loss_args(const Buffers& b, int head) const;
  linear_cross_entropy::ForwardBackward<P> loss_gradient_args(const Buffers& b, int head) const;
  static AttentionShape attention_shape(const ModelConfig& config);
  AttentionShape attention_shape() const { return attention_shape(config_); }

  // y = x w^T, dx = dy w and dw = dy^T x of a matrix w [out, in] for all tokens of a batch.
  Gemm product(int64_t out, int64_t in, const Elem* x, const Elem* w, Elem* y) const;
  Gemm input_gradient(int64_t out, int64_t in, const Elem* dy, const Elem* w, Elem* dx) const;
  Gemm weight_gradient(int64_t out, int64_t in, const Elem* dy, const Elem* x, Elem* dw) const;
  std::vector<Gemm> products_of(int64_t out, int64_t in, const Buffers& b) const;
  void multiply(const Gemm& problem);
  double seconds_alone(const Gemm& problem);
  void linear_backward(int64_t out, int64_t in, const Elem* dy, const Elem* x, int64_t weight,
                       Elem* dx);

  int64_t tokens() const { return config_.tokens_per_pass(); }
  // Columns of a head that are turned, in pairs.
  int64_t rotary_pairs() const {
    return (config_.rotary > 0 ? config_.rotary : config_.head_size) / 2;
  }
  // The first head that is trained: the backbone's (-1) or Medusa's first.
  int first_head() const { return config_.frozen ? 0 : -1; }
  const LayerBuffers& layer_buffers(int layer) const {
    return b_.layers[config_.recompute ? 0 : static_cast<size_t>(layer)];
  }
  int64_t hidden() const { return config_.hidden; }
  const Elem* weight(int64_t offset) const { return b_.weight + offset; }
  Elem* gradient(int64_t offset) const { return b_.gradient + offset; }

  ModelConfig config_;
  Ops<P> ops_;
  ParameterLayout layout_;
  MemoryPlan plan_;
  DeviceBuffer arena_;
  Buffers b_;
  std::optional<OwnedStream> own_stream_;  // none of a model that is only planned
  Stream stream_ = nullptr;
  StepGraphs graphs_;
  PartMeter* meter_ = nullptr;  // of the step at hand
  std::vector<Gemm> products_;  // of the last step with a meter
};

}  // namespace tigon::convergence
