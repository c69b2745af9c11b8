// SPDX-License-Identifier: Apache-2.0
// The table of models.
#include "harness/cli/options/models.h"

#include <algorithm>

#include "harness/run/cases/known_names.h"

namespace tigon::cli {

bool TrainedModel::can_be_planned() const { return norm == "rms_norm" && mlp != "gelu"; }

int64_t TrainedModel::parameters() const {
  const int64_t attention = hidden * head_size * 2 * (heads + kv_heads);
  const int64_t matrices = mlp == "gelu" ? 2 : 3;
  const int64_t layer = attention + matrices * hidden * intermediate + 2 * hidden;
  return vocabulary * hidden * (tied ? 1 : 2) + layers * layer + hidden;
}

const std::vector<TrainedModel>& trained_models() {
  static const std::vector<TrainedModel> kModels = {
#include "harness/cli/options/models.inc"
  };
  return kModels;
}

const TrainedModel& trained_model(const std::string& name) {
  std::vector<std::string> known;
  for (const TrainedModel& model : trained_models()) known.push_back(model.name);
  require_known("model", {name}, known);
  return *std::find_if(trained_models().begin(), trained_models().end(),
                       [&](const TrainedModel& model) { return model.name == name; });
}

std::vector<std::string> ops_of(const TrainedModel& model) {
  std::vector<std::string> parts = {model.norm, model.mlp, kHeadPart}, ops;
  if (model.rotary > 0) parts.push_back(kRotaryPart);
  for (const OpSpec& op : all_ops())
    if (std::find(parts.begin(), parts.end(), op.model_part) != parts.end()) ops.push_back(op.name);
  return ops;
}

std::map<std::string, std::vector<int64_t>> axes_of(const TrainedModel& model, const OpSpec& op) {
  std::map<ModelSize, std::vector<int64_t>> sizes = {
      {ModelSize::kHidden, {model.hidden}},
      {ModelSize::kIntermediate, {model.intermediate}},
      {ModelSize::kVocabulary, {model.vocabulary}},
      {ModelSize::kHeads, {model.heads}},
      {ModelSize::kKvHeads, {model.kv_heads}},
      {ModelSize::kRotary, {model.rotary}}};
  const int64_t expert = model.expert_intermediate;
  if (expert > 0 && expert != model.intermediate) sizes[ModelSize::kIntermediate].push_back(expert);
  std::map<std::string, std::vector<int64_t>> axes;
  for (const AxisPlan& plan : op.axes) {
    if (plan.model_size == ModelSize::kRotary && model.rotary == 0) return {};
    if (const auto size = sizes.find(plan.model_size); size != sizes.end())
      axes[plan.axis.symbol] = size->second;
  }
  return axes;
}

}  // namespace tigon::cli
