// SPDX-License-Identifier: Apache-2.0
// Buffers and their lifetimes.
#include "convergence/model_memory.h"

#include <algorithm>
#include <type_traits>

#include "convergence/kernels.h"
#include "convergence/model_loss.h"
#include "convergence/model_norms.h"
#include "convergence/model_products.h"

namespace tigon::convergence {

template <class P>
void BufferPlanner<P>::take_all() {
  b_ = {};
  take_state();
  take_inputs();
  take_activations();
  take_gradients();
  if (c_.config.medusa > 0) take_medusa();
  take_scratch();
}

template <class P>
int BufferPlanner<P>::last_forward() const {
  const bool again = c_.config.recompute && !c_.config.frozen;
  return again ? c_.phases.backward(0) : c_.phases.last_layer();
}

template <class P>
NormStatistics BufferPlanner<P>::take_statistics(int first, int last) {
  NormStatistics s{plan_.take<float>(Part::kNorms, c_.tokens(), first, last), nullptr};
  if (c_.config.norm == NormKind::kLayerNorm)
    s.mean = plan_.take<float>(Part::kNorms, c_.tokens(), first, last);
  return s;
}

template <class P>
LayerBuffers<typename P::Elem> BufferPlanner<P>::take_layer(int first, int last) {
  const ModelConfig& config = c_.config;
  const auto floats = [&](Part part, int64_t n) {
    return plan_.take<float>(part, c_.tokens() * n, first, last);
  };
  const auto elements = [&](Part part, int64_t n) {
    return plan_.take<Elem>(part, c_.tokens() * n, first, last);
  };
  LayerBuffers<Elem> b{};
  b.norm1 = take_statistics(first, last);
  b.norm2 = take_statistics(first, last);
  b.lse = floats(Part::kAttention, config.heads);
  b.normed1 = elements(Part::kNorms, config.hidden);
  if (config.qk_norm) {
    b.head_rstd = floats(Part::kNorms, config.heads + config.kv_heads);
    b.raw_qkv = elements(Part::kNorms, config.qkv_size());
  }
  b.qkv = elements(Part::kLinear, config.qkv_size());
  b.attention = elements(Part::kAttention, config.q_size());
  b.middle = elements(Part::kOther, config.hidden);
  b.normed2 = elements(Part::kNorms, config.hidden);
  b.gate_up = elements(Part::kLinear, int64_t{2} * config.intermediate);
  b.activated = elements(Part::kActivation, config.intermediate);
  return b;
}

template <class P>
void BufferPlanner<P>::take_state() {
  const int end = c_.phases.update();
  const int64_t trained = c_.layout.trained;
  b_.weight = plan_.take<Elem>(Part::kWeights, c_.layout.total, 0, end);
  b_.gradient = plan_.take<Elem>(Part::kGradients, trained, 0, end);
  if constexpr (std::is_same_v<Elem, float>)
    b_.master = b_.weight;
  else
    b_.master = plan_.take<float>(Part::kOptimizer, trained, 0, end);
  b_.m = plan_.take<float>(Part::kOptimizer, trained, 0, end);
  b_.v = plan_.take<float>(Part::kOptimizer, trained, 0, end);
  if (c_.config.accumulate > 1)
    b_.accumulated = plan_.take<float>(Part::kGradients, trained, 0, end);
}

template <class P>
void BufferPlanner<P>::take_inputs() {
  const int end = c_.phases.update();
  const int64_t n = c_.tokens();
  b_.input = plan_.take<int64_t>(Part::kOther, n, 0, end);
  b_.target = plan_.take<int64_t>(Part::kOther, n, 0, end);
  b_.order = plan_.take<int32_t>(Part::kOther, n, 0, end);
  b_.first = plan_.take<int32_t>(Part::kOther, n + 1, 0, end);
  b_.cos = plan_.take<float>(Part::kRotary, n * c_.rotary_pairs(), 0, end);
  b_.sin = plan_.take<float>(Part::kRotary, n * c_.rotary_pairs(), 0, end);
  b_.loss = plan_.take<float>(Part::kLoss, 1 + c_.config.medusa, 0, end);
  b_.square = plan_.take<float>(Part::kOptimizer, 1, 0, end);
  b_.schedule = plan_.take<float>(Part::kOptimizer, 2 * kSchedule, 0, end);
  b_.partial = plan_.take<float>(Part::kOptimizer, kNormPartials, end, end);
}

template <class P>
void BufferPlanner<P>::take_activations() {
  const StepPhases& phases = c_.phases;
  const int64_t n = c_.tokens(), rows = n * c_.hidden();
  if (c_.config.recompute)
    b_.layers.push_back(take_layer(0, std::max(phases.last_layer(), phases.last_read(0))));
  for (int l = 0; l < c_.config.layers; ++l) {
    const int last = phases.last_read(l);
    b_.x.push_back(plan_.take<Elem>(Part::kOther, rows, std::max(l - 1, 0), last));
    if (!c_.config.recompute) b_.layers.push_back(take_layer(l, last));
  }
  const int loss = phases.loss();
  b_.x.push_back(plan_.take<Elem>(Part::kOther, rows, phases.last_layer(), loss));
  b_.branch = plan_.take<Elem>(Part::kLinear, rows, 0, last_forward());
  b_.final_norm = take_statistics(loss, loss);
  b_.row_lse = plan_.take<float>(Part::kLoss, n, loss, loss);
  b_.normed = plan_.take<Elem>(Part::kNorms, rows, loss, loss);
}

template <class P>
void BufferPlanner<P>::take_gradients() {
  const ModelConfig& config = c_.config;
  if (config.frozen) return;
  const int loss = c_.phases.loss(), first = loss + 1, last = c_.phases.backward(0);
  const int64_t n = c_.tokens(), hidden = c_.hidden();
  b_.dnormed = plan_.take<Elem>(Part::kLoss, n * hidden, loss, loss);
  b_.dx = plan_.take<Elem>(Part::kOther, n * hidden, loss, c_.phases.update());
  b_.dnorm = plan_.take<float>(Part::kNorms, 2 * hidden, loss, last);
  b_.dbranch = plan_.take<Elem>(Part::kLinear, n * std::max(hidden, config.q_size()), first, last);
  b_.dactivated = plan_.take<Elem>(Part::kLinear, n * config.intermediate, first, last);
  b_.dqkv = plan_.take<Elem>(Part::kAttention, n * config.qkv_size(), first, last);
  if (config.qk_norm)
    b_.head_dnorm = plan_.take<float>(
        Part::kNorms, int64_t{config.heads + config.kv_heads} * config.head_size, first, last);
}

template <class P>
void BufferPlanner<P>::take_medusa() {
  const int loss = c_.phases.loss(), end = c_.phases.update();
  const auto elements = [&](Part part) {
    return plan_.take<Elem>(part, c_.tokens() * c_.hidden(), loss, loss);
  };
  b_.medusa.before = elements(Part::kLinear);
  b_.medusa.x = elements(Part::kActivation);
  b_.medusa.dx = elements(Part::kLoss);
  b_.medusa.dbefore = elements(Part::kActivation);
  b_.medusa.scale = plan_.take<float>(Part::kLoss, c_.config.medusa, 0, end);
  for (int k = 0; k < c_.config.medusa; ++k)
    b_.medusa.target.push_back(plan_.take<int64_t>(Part::kLoss, c_.tokens(), 0, end));
}

template <class P>
Scratch BufferPlanner<P>::take_bytes(Part part, size_t bytes, int first, int last) {
  return {plan_.take<char>(part, static_cast<int64_t>(bytes), first, last), bytes};
}

template <class P>
void BufferPlanner<P>::take_scratch() {
  const bool frozen = c_.config.frozen;
  const int loss = c_.phases.loss(), last = frozen ? loss : c_.phases.backward(0);
  const AttentionPlan attention = attention_plan(attention_shape(c_.config), dtype_of<Elem>);
  const size_t products = ModelProducts<P>(c_).workspace();
  const size_t norms = frozen ? 0 : ModelNorms<P>(c_).workspace();
  const size_t losses = ModelLosses<P>(c_).workspace();
  b_.attention_scratch = take_bytes(Part::kAttention, attention.forward_bytes, 0, last_forward());
  if (!frozen)
    b_.dattention_scratch = take_bytes(Part::kAttention, attention.backward_bytes, loss + 1, last);
  b_.gemm_scratch = take_bytes(Part::kLinear, products, 0, last);
  if (!frozen) b_.norm_scratch = take_bytes(Part::kNorms, norms, loss, last);
  b_.loss_scratch = take_bytes(Part::kLoss, losses, loss, loss);
}

template class BufferPlanner<F32>;
template class BufferPlanner<BF16>;

}  // namespace tigon::convergence
