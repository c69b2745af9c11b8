// The table of models.
#include "harness/cli/options/models.h"

#include <algorithm>

#include "harness/run/cases/known_names.h"

namespace tigon::cli {

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
  std::vector<std::string> ops = {model.norm, model.mlp, "cross_entropy", "linear_cross_entropy"};
  if (model.norm == "rms_norm") ops.push_back("add_rms_norm");
  if (model.rotary > 0) ops.push_back("rope");
  std::erase_if(ops, [](const std::string& op) { return find_op(op) == nullptr; });
  return ops;
}

std::map<std::string, std::vector<int64_t>> axes_of(const TrainedModel& model, const OpSpec& op) {
  std::map<std::string, std::vector<int64_t>> sizes = {
      {"H", {model.hidden}}, {"F", {model.intermediate}}, {"V", {model.vocabulary}},
      {"Q", {model.heads}},  {"K", {model.kv_heads}},     {"D", {model.rotary}}};
  const int64_t expert = model.expert_intermediate;
  if (expert > 0 && expert != model.intermediate) sizes["F"].push_back(expert);
  std::map<std::string, std::vector<int64_t>> axes;
  for (const AxisPlan& plan : op.axes)
    if (const auto size = sizes.find(plan.axis.symbol); size != sizes.end()) axes.insert(*size);
  if (const auto rotary = axes.find("D"); rotary != axes.end() && rotary->second[0] == 0) return {};
  return axes;
}

}  // namespace tigon::cli
