// SPDX-License-Identifier: Apache-2.0
// Description of a decoder and of the run that trains it, as data; presets by name.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/signature/dtype.h"

namespace tigon::convergence {

enum class NormKind { kRmsNorm, kLayerNorm };
enum class Activation { kSwiglu, kGegluTanh, kGegluErf };

// Pre-norm decoder: norms, rotary grouped-query attention, a gated MLP; AdamW with warm-up and
// cosine.
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
  NormKind norm = NormKind::kRmsNorm;
  float norm_offset = 0.0f;  // of RMSNorm's weights; with one, rounding is Gemma's
  float norm_eps = 1e-5f;
  bool qk_norm = false;  // RMSNorm of each head of q and k before they are rotated
  Activation activation = Activation::kSwiglu;
  double rope_theta = 10000.0;
  int rotary = 0;  // columns of a head that are rotated; 0: all
  bool rotary_interleaved = false;
  float softcap = 0.0f;            // of the final logits; 0: none
  float attention_softcap = 0.0f;  // of the scores of attention; 0: none
  // Medusa (Cai et al. 2024): head k of so many predicts the token k + 2 places on from
  // x + silu(W x), x the final norm's output, over the full vocabulary.
  int medusa = 0;
  bool frozen = false;  // only the Medusa heads are trained
  // Run.
  int sequence = 128;      // tokens of one sequence
  int batch = 4;           // sequences per forward pass
  int accumulate = 1;      // forward passes per step, whose gradients are averaged
  bool recompute = false;  // layers run again in backward instead of keeping their activations
  bool graph = true;       // on a GPU steps are captured in a CUDA graph; the same bits without
  int steps = 100;
  int quick_steps = 30;
  int held_out_batches = 4;  // most batches of the held-out part that the final loss is taken over
  std::vector<DType> dtypes = {DType::kF32, DType::kBF16};  // those trained unless asked otherwise
  int64_t logits_bytes = int64_t{1} << 20;  // chunk of the fused linear cross entropy
  // Optimizer.
  double learning_rate = 3e-3;  // peak; the cosine ends at a tenth of it
  double table_rate = 1.0;      // of the embedding and the head, as a multiple of that rate
  int warm_up = 10;             // steps
  double beta1 = 0.9;
  double beta2 = 0.95;
  double adam_eps = 1e-8;
  double weight_decay = 0.1;  // of matrices; norm weights do not decay
  double clip = 1.0;          // largest global gradient norm

  int64_t tokens_per_pass() const { return int64_t{sequence} * batch; }
  int64_t tokens_per_step() const { return tokens_per_pass() * accumulate; }
  int64_t q_size() const { return int64_t{heads} * head_size; }
  int64_t kv_size() const { return int64_t{kv_heads} * head_size; }
  int64_t qkv_size() const { return q_size() + 2 * kv_size(); }
  int64_t parameters() const;
};

// Names that `find_config` knows.
std::vector<std::string> config_names();

// The preset of that name, or nothing.
std::optional<ModelConfig> find_config(std::string_view name);

// Every field of model, run and optimizer that changes a bit of what is trained, as one line of
// JSON: equal when the trainings are.
std::string description(const ModelConfig& config);

// Empty when the description can be trained; else what is wrong and what would be right.
std::string problem_with(const ModelConfig& config);

}  // namespace tigon::convergence
