// Presets and their checks.
#include "convergence/model_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/signature/signature.h"

namespace tigon::convergence {
namespace {

// About 1.5 million parameters: 100 steps take 10 to 15 s on two cores.
ModelConfig tiny() {
  ModelConfig c;
  c.name = "tiny";
  return c;
}

// 357 million parameters with the vocabulary of Llama 3, for one GPU.
ModelConfig gpu_350m() {
  ModelConfig c;
  c.name = "350m";
  c.layers = 20;
  c.hidden = 1024;
  c.heads = 16;
  c.kv_heads = 8;
  c.head_size = 64;
  c.intermediate = 2816;
  c.vocabulary = 128256;
  c.tied = true;
  c.sequence = 4096;
  c.batch = 1;
  c.steps = 100;
  c.quick_steps = 20;
  c.held_out_batches = 2;
  c.dtypes = {DType::kBF16};
  c.logits_bytes = int64_t{256} << 20;
  c.learning_rate = 6e-4;
  c.warm_up = 20;
  return c;
}

std::vector<ModelConfig> presets() { return {tiny(), gpu_350m()}; }

}  // namespace

int64_t ModelConfig::parameters() const {
  const int64_t attention = hidden * (qkv_size() + q_size());
  const int64_t mlp = int64_t{3} * hidden * intermediate;
  const int64_t tables = int64_t{vocabulary} * hidden * (tied ? 1 : 2);
  return tables + layers * (attention + mlp + 2 * int64_t{hidden}) + hidden;
}

std::vector<std::string> config_names() {
  std::vector<std::string> names;
  for (const ModelConfig& c : presets()) names.push_back(c.name);
  return names;
}

std::optional<ModelConfig> find_config(std::string_view name) {
  for (ModelConfig& c : presets())
    if (c.name == name) return c;
  return std::nullopt;
}

std::string description(const ModelConfig& c) {
  const nlohmann::ordered_json fields = {{"name", c.name},
                                         {"layers", c.layers},
                                         {"hidden", c.hidden},
                                         {"heads", c.heads},
                                         {"kv_heads", c.kv_heads},
                                         {"head_size", c.head_size},
                                         {"intermediate", c.intermediate},
                                         {"vocabulary", c.vocabulary},
                                         {"tied", c.tied},
                                         {"norm_eps", c.norm_eps},
                                         {"rope_theta", c.rope_theta},
                                         {"sequence", c.sequence},
                                         {"batch", c.batch},
                                         {"logits_bytes", c.logits_bytes},
                                         {"learning_rate", c.learning_rate},
                                         {"warm_up", c.warm_up},
                                         {"beta1", c.beta1},
                                         {"beta2", c.beta2},
                                         {"adam_eps", c.adam_eps},
                                         {"weight_decay", c.weight_decay},
                                         {"clip", c.clip}};
  return fields.dump();
}

std::string problem_with(const ModelConfig& c) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"layers", c.layers},         {"hidden", c.hidden},     {"heads", c.heads},
      {"kv heads", c.kv_heads},     {"sequence", c.sequence}, {"batch", c.batch},
      {"vocabulary", c.vocabulary}, {"steps", c.steps},       {"intermediate", c.intermediate}};
  for (const auto& [name, value] : sizes)
    if (value < 1) return fmt::format("{} is {}: it must be at least 1", name, value);
  for (DType t : c.dtypes)
    if (t != DType::kF32 && t != DType::kBF16)
      return fmt::format("dtype {} cannot be trained: f32 and bf16 can", name_of(t));
  if (c.heads % c.kv_heads != 0)
    return fmt::format("{} heads do not share {} kv heads evenly", c.heads, c.kv_heads);
  if (c.head_size != 32 && c.head_size != 64 && c.head_size != 128)
    return fmt::format("head size is {}: 32, 64 and 128 are possible", c.head_size);
  if (c.hidden % 8 != 0 || c.intermediate % 8 != 0)
    return fmt::format("hidden {} and intermediate {} must be multiples of 8", c.hidden,
                       c.intermediate);
  return {};
}

}  // namespace tigon::convergence
