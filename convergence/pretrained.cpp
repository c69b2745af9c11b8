// SPDX-License-Identifier: Apache-2.0
// Names of tensors and fields of config.json, both ways.
#include "convergence/pretrained.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "convergence/converge.h"
#include "convergence/parameter_layout.h"
#include "convergence/safetensors.h"
#include "harness/json/json.h"
#include "kernels/signature/signature.h"

namespace tigon::convergence {
namespace {

namespace fs = std::filesystem;

constexpr const char *kConfig = "config.json", *kWeights = "model.safetensors",
                     *kIndex = "model.safetensors.index.json";

[[noreturn]] void refuse_folder(const fs::path& folder, const std::string& problem) {
  throw ConvergeError(2, fmt::format("{}: {}", folder.string(), problem));
}

Json json_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse_folder(file, "cannot be read");
  auto json = Json::try_parse(std::string{std::istreambuf_iterator<char>(in), {}});
  if (!json) refuse_folder(file, "is not JSON");
  return std::move(*json);
}

template <class T>
T field(const Json& json, const char* name, T otherwise) {
  return json.contains(name) && json[name].kind() != Json::Kind::kNull ? json[name].get<T>()
                                                                       : otherwise;
}

// Part of a parameter: so many rows from the first on.
struct Tensor {
  std::string name;  // as Hugging Face has it
  int64_t offset;    // in the flat array
  std::vector<int64_t> shape;
  int64_t size() const { return shape[0] * (shape.size() > 1 ? shape[1] : 1); }
};

std::vector<Tensor> tensors_of(const ModelConfig& c) {
  const ParameterLayout layout(c);
  const int64_t h = c.hidden, q = c.q_size(), kv = c.kv_size(), f = c.intermediate;
  std::vector<Tensor> all = {{"model.embed_tokens.weight", layout.embedding, {c.vocabulary, h}},
                             {"model.norm.weight", layout.final_norm.weight, {h}}};
  if (!c.tied) all.push_back({"lm_head.weight", layout.head, {c.vocabulary, h}});
  for (int l = 0; l < c.layers; ++l) {
    const ParameterLayout::Block& b = layout.blocks[static_cast<size_t>(l)];
    const auto add = [&](const char* name, int64_t offset, std::vector<int64_t> shape) {
      all.push_back({fmt::format("model.layers.{}.{}.weight", l, name), offset, std::move(shape)});
    };
    add("self_attn.q_proj", b.qkv, {q, h});
    add("self_attn.k_proj", b.qkv + q * h, {kv, h});
    add("self_attn.v_proj", b.qkv + (q + kv) * h, {kv, h});
    add("self_attn.o_proj", b.o, {h, q});
    add("mlp.gate_proj", b.gate_up, {f, h});
    add("mlp.up_proj", b.gate_up + f * h, {f, h});
    add("mlp.down_proj", b.down, {h, f});
    add("input_layernorm", b.norm1.weight, {h});
    add("post_attention_layernorm", b.norm2.weight, {h});
    if (!c.qk_norm) continue;
    add("self_attn.q_norm", b.q_norm, {c.head_size});
    add("self_attn.k_norm", b.k_norm, {c.head_size});
  }
  return all;
}

float half_to_float(uint16_t h) {
  const int exponent = h >> 10 & 0x1f, fraction = h & 0x3ff;
  const float sign = h & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  if (exponent == 0x1f) return fraction != 0 ? NAN : sign * HUGE_VALF;
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

void read_tensor(SafetensorsReader& in, const TensorEntry& entry, const fs::path& file, float* to,
                 int64_t n) {
  if (entry.type == "F32") return in.read(to, static_cast<size_t>(n) * sizeof(float));
  if (entry.type != "BF16" && entry.type != "F16")
    refuse_folder(file, fmt::format("{} is of type {}; F32, F16 and BF16 can be read", entry.name,
                                    entry.type));
  std::vector<uint16_t> bits(static_cast<size_t>(n));
  in.read(bits.data(), bits.size() * sizeof(uint16_t));
  std::transform(bits.begin(), bits.end(), to, [&](uint16_t b) {
    return entry.type == "F16" ? half_to_float(b)
                               : std::bit_cast<float>(static_cast<uint32_t>(b) << 16);
  });
}

std::set<std::string> files_of(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / kIndex, ignored))
    return fs::exists(folder / kWeights, ignored) ? std::set<std::string>{kWeights}
                                                  : std::set<std::string>{};
  std::set<std::string> files;
  const Json index = json_of(folder / kIndex);
  for (const auto& [tensor, file] : index.at("weight_map").items())
    files.insert(file.get<std::string>());
  return files;
}

// What this model does not have, or nothing.
std::string problem_with_fields(const Json& json, const std::string& type, int sequence) {
  if (type == "qwen2") return "Qwen 2 has biases in attention, which this model has not";
  if (type.rfind("gemma", 0) == 0)
    return "Gemma scales its embedding and, from 2 on, has norms behind the branches, which this "
           "model has not";
  if (type != "llama" && type != "mistral" && type != "qwen3")
    return fmt::format("a model of type '{}': llama, mistral and qwen3 can be read", type);
  for (const char* bias : {"attention_bias", "mlp_bias"})
    if (field(json, bias, false)) return fmt::format("{} is true: this model has no biases", bias);
  if (const auto act = field<std::string>(json, "hidden_act", "silu"); act != "silu")
    return fmt::format("hidden_act is {}: silu can be read", act);
  const bool window = type == "mistral" || field(json, "use_sliding_window", false);
  if (const int n = field(json, "sliding_window", 0); window && n > 0 && n < sequence)
    return fmt::format("attention sees {} tokens, fewer than a sequence of {}", n, sequence);
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    if (!json.contains(name) || json[name].kind() != Json::Kind::kObject) continue;
    const auto kind = field<std::string>(json[name], "rope_type",
                                         field<std::string>(json[name], "type", "default"));
    if (kind != "default")
      return fmt::format("rotary angles are scaled ({}), here they are not", kind);
    if (field(json[name], "partial_rotary_factor", 1.0) != 1.0)
      return "only part of a head is rotated";
  }
  return {};
}

double theta_of(const Json& json) {
  double theta = field(json, "rope_theta", 10000.0);
  if (json.contains("rope_parameters") && json["rope_parameters"].kind() == Json::Kind::kObject)
    theta = field(json["rope_parameters"], "rope_theta", theta);
  return theta;
}

}  // namespace

ModelConfig pretrained_config(const fs::path& folder, ModelConfig c) {
  const Json json = json_of(folder / kConfig);
  try {
    const auto type = field<std::string>(json, "model_type", "");
    if (const std::string problem = problem_with_fields(json, type, c.sequence); !problem.empty())
      refuse_folder(folder / kConfig, problem);
    c.name = type;
    c.hidden = json.at("hidden_size").get<int>();
    c.layers = json.at("num_hidden_layers").get<int>();
    c.heads = json.at("num_attention_heads").get<int>();
    c.kv_heads = field(json, "num_key_value_heads", c.heads);
    c.head_size = field(json, "head_dim", c.hidden / std::max(1, c.heads));
    c.intermediate = json.at("intermediate_size").get<int>();
    c.vocabulary = json.at("vocab_size").get<int>();
    c.tied = field(json, "tie_word_embeddings", false);
    c.norm_eps = static_cast<float>(field(json, "rms_norm_eps", 1e-6));
    c.rope_theta = theta_of(json);
    c.qk_norm = type == "qwen3";
  } catch (const Json::Error& error) {
    refuse_folder(folder / kConfig, error.what());
  }
  return c;
}

std::vector<float> pretrained_weights(const fs::path& folder, const ModelConfig& config) {
  const std::set<std::string> files = files_of(folder);
  if (files.empty()) return {};
  std::map<std::string, Tensor> missing;
  for (Tensor& t : tensors_of(config)) missing.emplace(t.name, t);
  std::vector<float> weights(static_cast<size_t>(ParameterLayout(config).total), 0.0f);
  for (const std::string& name : files) {
    const fs::path file = folder / name;
    SafetensorsReader in(file);
    for (const TensorEntry& entry : in.entries()) {
      const auto found = missing.find(entry.name);
      if (found == missing.end())
        refuse_folder(file, fmt::format("tensor {} has no place in the model", entry.name));
      const Tensor& t = found->second;
      if (entry.shape != t.shape)
        refuse_folder(file, fmt::format("tensor {} is [{}], not [{}]", entry.name,
                                        fmt::join(entry.shape, ", "), fmt::join(t.shape, ", ")));
      read_tensor(in, entry, file, &weights[static_cast<size_t>(t.offset)], t.size());
      missing.erase(found);
    }
  }
  if (!missing.empty())
    refuse_folder(folder, fmt::format("{} tensors are missing, {} first", missing.size(),
                                      missing.begin()->first));
  return weights;
}

std::string problem_with_export(const ModelConfig& c) {
  if (c.norm != NormKind::kRmsNorm || c.norm_offset != 0.0f)
    return "its norms are none of a Llama's";
  if (c.activation != Activation::kSwiglu) return "its activation is none of a Llama's";
  if (c.softcap > 0 || c.attention_softcap > 0) return "it has softcaps";
  if (c.rotary > 0 || c.rotary_interleaved) return "it rotates in another way";
  if (c.medusa > 0) return "it has Medusa heads";
  return {};
}

void export_pretrained(const fs::path& folder, const ModelConfig& c,
                       const std::vector<float>& weights) {
  if (const std::string problem = problem_with_export(c); !problem.empty())
    throw ConvergeError(2, fmt::format("model {} cannot be exported: {}", c.name, problem));
  const std::vector<Tensor> tensors = tensors_of(c);
  std::vector<TensorEntry> entries;
  for (const Tensor& t : tensors)
    entries.push_back({t.name, "F32", t.shape, t.size() * static_cast<int64_t>(sizeof(float))});
  SafetensorsWriter out(folder / kWeights, entries, {{"format", "pt"}});
  for (const Tensor& t : tensors)
    out.write(&weights[static_cast<size_t>(t.offset)],
              static_cast<size_t>(t.size()) * sizeof(float));
  out.commit();
  const Json json = {{"architectures", std::vector<std::string>{c.qk_norm ? "Qwen3ForCausalLM"
                                                                          : "LlamaForCausalLM"}},
                     {"model_type", c.qk_norm ? "qwen3" : "llama"},
                     {"hidden_act", "silu"},
                     {"hidden_size", c.hidden},
                     {"intermediate_size", c.intermediate},
                     {"num_hidden_layers", c.layers},
                     {"num_attention_heads", c.heads},
                     {"num_key_value_heads", c.kv_heads},
                     {"head_dim", c.head_size},
                     {"vocab_size", c.vocabulary},
                     {"max_position_embeddings", c.sequence},
                     {"rms_norm_eps", c.norm_eps},
                     {"rope_theta", c.rope_theta},
                     {"attention_bias", false},
                     {"mlp_bias", false},
                     {"tie_word_embeddings", c.tied},
                     {"torch_dtype", "float32"}};
  std::ofstream file(folder / kConfig);
  if (!(file << json.dump() << "\n"))
    throw ConvergeError(5, "cannot write " + (folder / kConfig).string());
}

}  // namespace tigon::convergence
