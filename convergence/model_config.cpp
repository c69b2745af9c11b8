// SPDX-License-Identifier: Apache-2.0
// Presets and their checks.
#include "convergence/model_config.h"

#include <fmt/format.h>

#include <cmath>

#include "convergence/parameter_layout.h"
#include "harness/json/json.h"
#include "kernels/signature/signature.h"

namespace tigon::convergence {
namespace {

const char* name_of(Activation a) {
  return a == Activation::kSwiglu      ? "swiglu"
         : a == Activation::kGegluTanh ? "geglu tanh"
                                       : "geglu erf";
}

// About 1.5 million parameters: small enough for two cores.
ModelConfig tiny() {
  ModelConfig c;
  c.name = "tiny";
  c.learning_rate = 1e-3;  // stable: curves of a pair stay within the margin of their verdict
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

// The shape of Qwen 3: norms of q and k, tied.
ModelConfig tiny_qwen3() {
  ModelConfig c = tiny();
  c.name = "tiny-qwen3";
  c.qk_norm = true;
  c.tied = true;
  c.norm_eps = 1e-6f;
  c.rope_theta = 1e6;
  return c;
}

// The shape of Gemma 2, but for its norms behind the branches.
ModelConfig tiny_gemma2() {
  ModelConfig c = tiny();
  c.name = "tiny-gemma2";
  c.norm_offset = 1.0f;
  c.norm_eps = 1e-6f;
  c.activation = Activation::kGegluTanh;
  c.softcap = 30.0f;
  c.attention_softcap = 50.0f;
  c.tied = true;
  return c;
}

ModelConfig gpu_125m() {
  ModelConfig c = gpu_350m();
  c.name = "125m";
  c.layers = 12;
  c.hidden = 768;
  c.heads = 12;
  c.kv_heads = 12;
  c.intermediate = 2048;
  c.vocabulary = 50304;
  c.batch = 4;
  return c;
}

// The sizes of Llama 3.2 1B.
ModelConfig gpu_1b() {
  ModelConfig c = gpu_350m();
  c.name = "1b";
  c.layers = 16;
  c.hidden = 2048;
  c.heads = 32;
  c.kv_heads = 8;
  c.intermediate = 8192;
  c.rope_theta = 5e5;
  c.learning_rate = 3e-4;
  return c;
}

// Llama 3 8B with as many of its 32 layers as fit on one GPU of 141 GB with all training state.
ModelConfig gpu_8b_cut() {
  ModelConfig c = gpu_350m();
  c.name = "llama3-8b-cut";
  c.layers = 24;
  c.hidden = 4096;
  c.heads = 32;
  c.kv_heads = 8;
  c.head_size = 128;
  c.intermediate = 14336;
  c.tied = false;
  c.rope_theta = 5e5;
  c.learning_rate = 3e-4;
  return c;
}

std::vector<ModelConfig> presets() {
  return {tiny(), tiny_qwen3(), tiny_gemma2(), gpu_125m(), gpu_350m(), gpu_1b(), gpu_8b_cut()};
}

}  // namespace

int64_t ModelConfig::parameters() const {
  int64_t sum = 0;
  for (const Parameter& p : ParameterLayout(*this).parameters) sum += p.size();
  return sum;
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
  const Json fields = {{"name", c.name},
                       {"layers", c.layers},
                       {"hidden", c.hidden},
                       {"heads", c.heads},
                       {"kv_heads", c.kv_heads},
                       {"head_size", c.head_size},
                       {"intermediate", c.intermediate},
                       {"vocabulary", c.vocabulary},
                       {"tied", c.tied},
                       {"norm", c.norm == NormKind::kRmsNorm ? "rms_norm" : "layer_norm"},
                       {"norm_offset", c.norm_offset},
                       {"norm_eps", c.norm_eps},
                       {"qk_norm", c.qk_norm},
                       {"activation", name_of(c.activation)},
                       {"rotary", c.rotary},
                       {"rotary_interleaved", c.rotary_interleaved},
                       {"softcap", c.softcap},
                       {"attention_softcap", c.attention_softcap},
                       {"medusa", c.medusa},
                       {"frozen", c.frozen},
                       {"accumulate", c.accumulate},
                       {"recompute", c.recompute},
                       {"rope_theta", c.rope_theta},
                       {"sequence", c.sequence},
                       {"batch", c.batch},
                       {"logits_bytes", c.logits_bytes},
                       {"learning_rate", c.learning_rate},
                       {"table_rate", c.table_rate},
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
  if (c.accumulate < 1) return fmt::format("accumulate is {}: it must be at least 1", c.accumulate);
  if (c.medusa < 0) return fmt::format("{} Medusa heads: 0 or more are possible", c.medusa);
  if (c.frozen && c.medusa == 0)
    return "nothing would be trained: a frozen backbone needs Medusa heads";
  if (c.medusa >= c.sequence)
    return fmt::format("{} Medusa heads look beyond a sequence of {} tokens", c.medusa, c.sequence);
  if (c.rotary < 0 || c.rotary > c.head_size || c.rotary % 2 != 0)
    return fmt::format("rotary is {}: an even number up to the head size {} is possible", c.rotary,
                       c.head_size);
  if (c.norm == NormKind::kLayerNorm && c.norm_offset != 0.0f)
    return fmt::format("norm offset {}: only RMSNorm has one", c.norm_offset);
  for (const float cap : {c.softcap, c.attention_softcap})
    if (!(cap >= 0.0f) || !std::isfinite(cap))
      return fmt::format("softcap {}: a number above 0 is possible, and 0 for none", cap);
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
