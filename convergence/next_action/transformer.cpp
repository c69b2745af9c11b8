// SPDX-License-Identifier: Apache-2.0
// Training and scoring of the transformer.
#include "convergence/next_action/transformer.h"

#include <fmt/format.h>

#include "convergence/converge.h"
#include "convergence/next_action/head.h"
#include "convergence/next_action/windows.h"
#include "convergence/train.h"

namespace tigon::convergence::next_action {
namespace {

std::vector<Hits> score(Model<F32>& model, const ModelConfig& config,
                        const std::vector<Sequence>& learners) {
  const std::vector<float> weights = model.weights();
  const Head head{weights.data() + model.layout().head, nullptr, config.vocabulary, config.hidden};
  const std::vector<Window> windows = scoring_windows(learners, config.sequence);
  std::vector<Hits> hits(learners.size());
  for (size_t first = 0; first < windows.size(); first += static_cast<size_t>(config.batch)) {
    const Batch batch = batch_of(learners, windows, first, config.batch, config.sequence);
    const std::vector<float> hidden = model.hidden_states(batch);
    const std::vector<int32_t> targets(batch.target.begin(), batch.target.end());
    const std::vector<int> rank = ranks(head, hidden.data(), targets);
    for (size_t i = 0; i < targets.size(); ++i)
      if (targets[i] >= 0)
        hits[windows[first + i / static_cast<size_t>(config.sequence)].learner].add(rank[i]);
  }
  return hits;
}

}  // namespace

ModelConfig transformer_config(int32_t vocabulary) {
  ModelConfig c;
  c.name = "next_action";
  c.layers = 1;
  c.hidden = 128;
  c.heads = c.kv_heads = 4;
  c.head_size = 32;
  c.intermediate = 128;
  c.vocabulary = vocabulary;
  c.sequence = 128;
  c.batch = 8;
  c.steps = 1400;
  c.dtypes = {DType::kF32};
  c.logits_bytes = int64_t{4} << 20;
  c.learning_rate = 4e-3;
  // Rows of the tables change only when their resource occurs, and seldom enough that the mean of
  // their squares must last.
  c.table_rate = 4.0;
  c.beta2 = 0.99;
  c.warm_up = 20;
  c.weight_decay = 0.01;
  return c;
}

// 4,096 tokens a step: of the 1.2 million actions of 1,400 learners, 2,400 steps are six passes, as
// the LSTM has, and 6,000 are twenty.
std::vector<ModelConfig> large_transformer_configs(int32_t vocabulary) {
  struct Size {
    int hidden, sequence, steps;
  };
  constexpr int kTokens = 4096;
  std::vector<ModelConfig> configs;
  for (const Size& size : {Size{256, 256, 6000},
                           {256, 256, 2400},
                           {256, 512, 2400},
                           {128, 256, 2400},
                           {128, 512, 2400}}) {
    ModelConfig c = transformer_config(vocabulary);
    c.name = fmt::format("{} wide, {} actions of past, {} steps", size.hidden, size.sequence,
                         size.steps);
    c.layers = 2;
    c.hidden = size.hidden;
    c.heads = c.kv_heads = size.hidden / c.head_size;
    c.intermediate = 2 * size.hidden;
    c.sequence = size.sequence;
    c.batch = kTokens / size.sequence;
    c.steps = size.steps;
    configs.push_back(c);
  }
  return configs;
}

TransformerResult transformer(const Sequences& sequences, const ModelConfig& config, uint64_t seed,
                              const std::function<bool(int, double)>& on_step) {
  TransformerResult result;
  result.parameters = config.parameters();
  try {
    const Ops<F32> ops = fused_ops<F32>();
    Model<F32>::tune(config, ops);
    Model<F32> model(config, ops);
    model.set_weights(initial_weights(config, seed));
    std::vector<Window> windows;
    size_t next = 0;
    uint64_t epoch = 0;
    for (int step = 0; step < config.steps; ++step, next += static_cast<size_t>(config.batch)) {
      if (next >= windows.size()) {
        windows = training_windows(sequences.train, config.sequence, seed, epoch++);
        next = 0;
      }
      const Batch batch = batch_of(sequences.train, windows, next, config.batch, config.sequence);
      const StepResult done = model.step(batch, {step, learning_rate(config, step, config.steps)});
      if (!on_step(step, done.loss)) return result;
    }
    result.launches = model.launches();
    result.validation = score(model, config, sequences.validation);
    result.hits = score(model, config, sequences.held_out);
  } catch (const DeviceError& e) {
    throw ConvergeError(5, fmt::format("transformer: {}", e.what()));
  }
  return result;
}

}  // namespace tigon::convergence::next_action
