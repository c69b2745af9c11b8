// SPDX-License-Identifier: Apache-2.0
// Models that people train, and the sizes that an op has in them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/spec/op_spec.h"

namespace tigon::cli {

struct TrainedModel {
  std::string name;
  int64_t layers, hidden, heads, kv_heads, head_size;
  int64_t rotary;  // elements of a head that are rotated; 0: no rotary embedding
  int64_t intermediate, expert_intermediate, vocabulary;
  std::string norm, mlp;  // names of ops; "gelu" is none of ours
  bool tied;              // the head is the embedding
  double billions;        // of parameters, as its model card says
  std::string source;

  // Whether it is made of what the trainer of convergence/ has: RMSNorm and a gated MLP.
  bool can_be_planned() const;
  // Of a dense model: embedding, attention, MLP and norms, without biases and positions.
  int64_t parameters() const;
};

// All of them, in the order of models.inc.
const std::vector<TrainedModel>& trained_models();

// Throws UsageError with the nearest name.
const TrainedModel& trained_model(const std::string& name);

// The ops of the build that this model is made of (OpSpec::model_part).
std::vector<std::string> ops_of(const TrainedModel& model);

// Sizes that the op's axes have in the model, by symbol (AxisPlan::model_size). Tokens are not the
// model's. Empty where the model has no such sizes, e.g. rope's in GPT-2.
std::map<std::string, std::vector<int64_t>> axes_of(const TrainedModel& model, const OpSpec& op);

}  // namespace tigon::cli
