// SPDX-License-Identifier: Apache-2.0
// What the parts of a model's step share: its description, its buffers and where it runs.
#pragma once
#include <vector>

#include "convergence/attention.h"
#include "convergence/model_buffers.h"
#include "convergence/model_config.h"
#include "convergence/ops.h"
#include "convergence/parameter_layout.h"
#include "convergence/step_parts.h"
#include "convergence/step_phases.h"
#include "kernels/device/gemm.h"

namespace tigon::convergence {

inline AttentionShape attention_shape(const ModelConfig& c) {
  return {c.batch, c.sequence, c.heads, c.kv_heads, c.head_size, c.attention_softcap};
}

template <class P>
struct ModelContext {
  using Elem = typename P::Elem;

  ModelContext(const ModelConfig& model, const Ops<P>& table)
      : config(model), ops(table), layout(model), phases(model) {}
  ModelContext(const ModelContext&) = delete;
  ModelContext& operator=(const ModelContext&) = delete;

  int64_t tokens() const { return config.tokens_per_pass(); }
  int64_t hidden() const { return config.hidden; }
  // Pairs of columns of a head that are rotated.
  int64_t rotary_pairs() const {
    return (config.rotary > 0 ? config.rotary : config.head_size) / 2;
  }
  const Elem* weight(int64_t offset) const { return b.weight + offset; }
  Elem* gradient(int64_t offset) const { return b.gradient + offset; }
  // Index of the buffers that hold a layer's activations.
  size_t buffers_of(int layer) const { return config.recompute ? 0 : static_cast<size_t>(layer); }
  const LayerBuffers<Elem>& layer(int layer) const { return b.layers[buffers_of(layer)]; }

  // What is enqueued while the result lives belongs to that part of the step.
  PartRange part(Part part) const { return PartRange(meter, part); }
  void enter(int phase) const {
    if (meter != nullptr) meter->enter(phase);
  }

  const ModelConfig config;
  const Ops<P> ops;
  const ParameterLayout layout;
  const StepPhases phases;
  ModelBuffers<Elem> b{};
  Stream stream = nullptr;
  PartMeter* meter = nullptr;  // of the step at hand
  std::vector<Gemm> products;  // of the last step with a meter
};

}  // namespace tigon::convergence
