// Description of a LLaMA-shaped model and of the run that trains it, as data; presets by name.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/signature/dtype.h"

namespace tigon::convergence {

// Pre-norm decoder: RMSNorm, rotary grouped-query attention, SwiGLU; AdamW with warm-up and cosine.
struct ModelConfig {
  std::string name;
  // Model.
  int layers = 2;
  int hidden = 128;
  int heads = 4;
  int kv_heads = 2;
  int head_size = 32;
  int intermediate = 352;
  int vocabulary = 4096;  // rows of the embedding; token ids are smaller
  bool tied = false;      // the head is the embedding
  float norm_eps = 1e-5f;
  double rope_theta = 10000.0;
  // Run.
  int sequence = 128;  // tokens of one sequence
  int batch = 4;       // sequences per step
  int steps = 100;
  int quick_steps = 30;
  int held_out_batches = 4;  // most batches of the held-out part that the final loss is taken over
  std::vector<DType> dtypes = {DType::kF32, DType::kBF16};  // those trained unless asked otherwise
  int64_t logits_bytes = int64_t{1} << 20;  // chunk of the fused linear cross entropy
  // Optimizer.
  double learning_rate = 3e-3;  // peak; the cosine ends at a tenth of it
  int warm_up = 10;             // steps
  double beta1 = 0.9;
  double beta2 = 0.95;
  double adam_eps = 1e-8;
  double weight_decay = 0.1;  // of matrices; norm weights do not decay
  double clip = 1.0;          // largest global gradient norm

  int64_t tokens_per_step() const { return int64_t{sequence} * batch; }
  int64_t q_size() const { return int64_t{heads} * head_size; }
  int64_t kv_size() const { return int64_t{kv_heads} * head_size; }
  int64_t qkv_size() const { return q_size() + 2 * kv_size(); }
  int64_t parameters() const;
};

// Names that `find_config` knows.
std::vector<std::string> config_names();

// The preset of that name, or nothing.
std::optional<ModelConfig> find_config(std::string_view name);

// Every field of model, run and optimizer as one line of JSON: equal when the trainings are.
std::string description(const ModelConfig& config);

// Empty when the description can be trained; else what is wrong and what would be right.
std::string problem_with(const ModelConfig& config);

}  // namespace tigon::convergence
