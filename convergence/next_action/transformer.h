// SPDX-License-Identifier: Apache-2.0
// Causal transformer over learners' actions: the trainer's model on the fused kernels.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convergence/model_config.h"
#include "convergence/next_action/sequences.h"

namespace tigon::convergence::next_action {

// A model for two cores, and those for a GPU, of which the validation learners choose.
ModelConfig transformer_config(int32_t vocabulary);
std::vector<ModelConfig> large_transformer_configs(int32_t vocabulary);

struct TransformerResult {
  std::vector<Hits> hits;        // of held-out learners; empty when stopped
  std::vector<Hits> validation;  // of those to choose by
  int64_t parameters = 0;
  std::string launches = {};  // of a step (Model::launches)
};

// Trains on windows of the training learners, padded by ignore_index, and scores the held-out ones
// with at least half a window of past for each action that has one. `on_step` hears the step, from
// 0, and its loss in nats, and says whether to go on. Throws ConvergeError(5) when memory runs out
// or a launch fails.
TransformerResult transformer(const Sequences& sequences, const ModelConfig& config, uint64_t seed,
                              const std::function<bool(int, double)>& on_step);

}  // namespace tigon::convergence::next_action
