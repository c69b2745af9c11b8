// Which buffers a training step has and in which phases they live.
#include <algorithm>
#include <type_traits>

#include "convergence/kernels.h"
#include "convergence/model.h"

namespace tigon::convergence {

template <class P>
typename Model<P>::NormStatistics Model<P>::take_statistics(MemoryPlan& plan, int first,
                                                            int last) const {
  NormStatistics s{plan.take<float>(Part::kNorms, tokens(), first, last), nullptr};
  if (config_.norm == NormKind::kLayerNorm)
    s.mean = plan.take<float>(Part::kNorms, tokens(), first, last);
  return s;
}

template <class P>
typename Model<P>::LayerBuffers Model<P>::take_layer(MemoryPlan& plan, int first, int last) const {
  const auto floats = [&](Part part, int64_t n) {
    return plan.take<float>(part, tokens() * n, first, last);
  };
  const auto elements = [&](Part part, int64_t n) {
    return plan.take<Elem>(part, tokens() * n, first, last);
  };
  LayerBuffers b{};
  b.norm1 = take_statistics(plan, first, last);
  b.norm2 = take_statistics(plan, first, last);
  b.lse = floats(Part::kAttention, config_.heads);
  b.normed1 = elements(Part::kNorms, hidden());
  if (config_.qk_norm) {
    b.head_rstd = floats(Part::kNorms, config_.heads + config_.kv_heads);
    b.raw_qkv = elements(Part::kNorms, config_.qkv_size());
  }
  b.qkv = elements(Part::kLinear, config_.qkv_size());
  b.attention = elements(Part::kAttention, config_.q_size());
  b.middle = elements(Part::kOther, hidden());
  b.normed2 = elements(Part::kNorms, hidden());
  b.gate_up = elements(Part::kLinear, int64_t{2} * config_.intermediate);
  b.activated = elements(Part::kActivation, config_.intermediate);
  return b;
}

template <class P>
typename Model<P>::Buffers Model<P>::take_buffers(MemoryPlan& plan) const {
  Buffers b{};
  take_state(plan, b);
  take_inputs(plan, b);
  take_activations(plan, b);
  take_gradients(plan, b);
  if (config_.medusa > 0) take_medusa(plan, b);
  take_scratch(plan, b);
  return b;
}

template <class P>
void Model<P>::take_state(MemoryPlan& plan, Buffers& b) const {
  const int end = update_phase();
  const int64_t trained = layout_.trained;
  b.weight = plan.take<Elem>(Part::kWeights, layout_.total, 0, end);
  b.gradient = plan.take<Elem>(Part::kGradients, trained, 0, end);
  if constexpr (std::is_same_v<Elem, float>)
    b.master = b.weight;
  else
    b.master = plan.take<float>(Part::kOptimizer, trained, 0, end);
  b.m = plan.take<float>(Part::kOptimizer, trained, 0, end);
  b.v = plan.take<float>(Part::kOptimizer, trained, 0, end);
  if (config_.accumulate > 1) b.accumulated = plan.take<float>(Part::kGradients, trained, 0, end);
}

template <class P>
void Model<P>::take_inputs(MemoryPlan& plan, Buffers& b) const {
  const int end = update_phase();
  const int64_t n = tokens();
  b.input = plan.take<int64_t>(Part::kOther, n, 0, end);
  b.target = plan.take<int64_t>(Part::kOther, n, 0, end);
  b.order = plan.take<int32_t>(Part::kOther, n, 0, end);
  b.first = plan.take<int32_t>(Part::kOther, n + 1, 0, end);
  b.cos = plan.take<float>(Part::kRotary, n * rotary_pairs(), 0, end);
  b.sin = plan.take<float>(Part::kRotary, n * rotary_pairs(), 0, end);
  b.loss = plan.take<float>(Part::kLoss, 1 + config_.medusa, 0, end);
  b.square = plan.take<float>(Part::kOptimizer, 1, 0, end);
  b.schedule = plan.take<float>(Part::kOptimizer, 2 * kSchedule, 0, end);
  b.partial = plan.take<float>(Part::kOptimizer, kNormPartials, end, end);
}

template <class P>
void Model<P>::take_activations(MemoryPlan& plan, Buffers& b) const {
  const int loss = loss_phase();
  const int64_t n = tokens();
  if (config_.recompute)
    b.layers.push_back(take_layer(plan, 0, std::max(last_layer(), kept_until(0))));
  for (int l = 0; l < config_.layers; ++l) {
    b.x.push_back(plan.take<Elem>(Part::kOther, n * hidden(), std::max(l - 1, 0), kept_until(l)));
    if (!config_.recompute) b.layers.push_back(take_layer(plan, l, kept_until(l)));
  }
  b.x.push_back(plan.take<Elem>(Part::kOther, n * hidden(), last_layer(), loss));
  const bool again = config_.recompute && !config_.frozen;
  b.branch =
      plan.take<Elem>(Part::kLinear, n * hidden(), 0, again ? backward_phase(0) : last_layer());
  b.final_norm = take_statistics(plan, loss, loss);
  b.row_lse = plan.take<float>(Part::kLoss, n, loss, loss);
  b.normed = plan.take<Elem>(Part::kNorms, n * hidden(), loss, loss);
}

template <class P>
void Model<P>::take_gradients(MemoryPlan& plan, Buffers& b) const {
  if (config_.frozen) return;
  const int loss = loss_phase(), first = loss + 1, last = backward_phase(0);
  const int64_t n = tokens();
  b.dnormed = plan.take<Elem>(Part::kLoss, n * hidden(), loss, loss);
  b.dx = plan.take<Elem>(Part::kOther, n * hidden(), loss, update_phase());
  b.dnorm = plan.take<float>(Part::kNorms, 2 * hidden(), loss, last);
  b.dbranch = plan.take<Elem>(Part::kLinear, n * std::max(hidden(), config_.q_size()), first, last);
  b.dactivated = plan.take<Elem>(Part::kLinear, n * config_.intermediate, first, last);
  b.dqkv = plan.take<Elem>(Part::kAttention, n * config_.qkv_size(), first, last);
  if (config_.qk_norm)
    b.head_dnorm = plan.take<float>(
        Part::kNorms, int64_t{config_.heads + config_.kv_heads} * config_.head_size, first, last);
}

template <class P>
void Model<P>::take_medusa(MemoryPlan& plan, Buffers& b) const {
  const int loss = loss_phase(), end = update_phase();
  const auto elements = [&](Part part) {
    return plan.take<Elem>(part, tokens() * hidden(), loss, loss);
  };
  b.medusa.before = elements(Part::kLinear);
  b.medusa.x = elements(Part::kActivation);
  b.medusa.dx = elements(Part::kLoss);
  b.medusa.dbefore = elements(Part::kActivation);
  b.medusa.scale = plan.take<float>(Part::kLoss, config_.medusa, 0, end);
  for (int k = 0; k < config_.medusa; ++k)
    b.medusa.target.push_back(plan.take<int64_t>(Part::kLoss, tokens(), 0, end));
}

template <class P>
void Model<P>::take_scratch(MemoryPlan& plan, Buffers& b) const {
  const auto take = [&](Part part, size_t bytes, int first, int last) {
    return Scratch{plan.take<char>(part, static_cast<int64_t>(bytes), first, last), bytes};
  };
  size_t gemm_bytes = 0, norm_bytes = 0, loss_bytes = 0;
  for (const Gemm& g : layer_products(b)) gemm_bytes = std::max(gemm_bytes, gemm_workspace(g));
  if (!config_.frozen) {
    const Elem* const x = b.dx;
    const NormStatistics s = b.final_norm;
    norm_bytes =
        config_.norm == NormKind::kRmsNorm
            ? ops_.workspace(rms_gradient_args(b, x, x, b.weight, s.rstd, b.dx))
            : ops_.workspace(layer_norm_gradient_args(b, x, x, layout_.final_norm, s, b.dx));
    if (config_.qk_norm)
      norm_bytes = std::max(norm_bytes, ops_.workspace(head_gradient_args(b, 0, 0, 0)));
  }
  for (int head = first_head(); head < config_.medusa; ++head)
    loss_bytes = std::max({loss_bytes, ops_.workspace(loss_args(b, head)),
                           ops_.workspace(loss_gradient_args(b, head))});
  const int last = config_.frozen ? loss_phase() : backward_phase(0);
  const AttentionPlan attention = attention_plan(attention_shape(), dtype_of<Elem>);
  const bool again = config_.recompute && !config_.frozen;
  b.attention_scratch =
      take(Part::kAttention, attention.forward_bytes, 0, again ? last : last_layer());
  if (!config_.frozen)
    b.dattention_scratch = take(Part::kAttention, attention.backward_bytes, loss_phase() + 1, last);
  b.gemm_scratch = take(Part::kLinear, gemm_bytes, 0, last);
  if (!config_.frozen) b.norm_scratch = take(Part::kNorms, norm_bytes, loss_phase(), last);
  b.loss_scratch = take(Part::kLoss, loss_bytes, loss_phase(), loss_phase());
}

template class Model<F32>;
template class Model<BF16>;

}  // namespace tigon::convergence
