// SPDX-License-Identifier: Apache-2.0
// Where each parameter of a model begins in the flat arrays of weights, gradients and optimizer
// state.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "convergence/model_config.h"

namespace tigon::convergence {

// What a parameter is at first.
enum class Initial { kRandom, kRandomIntoResidual, kNormWeight, kZero };

struct Parameter {
  std::string name;  // "embedding", "layers.0.qkv", ...
  Initial initial;
  int64_t offset, rows, columns;
  int64_t size() const { return rows * columns; }
};

// A norm's weight and, of layer_norm, bias.
struct NormOffsets {
  int64_t weight, bias;
};

// Matrices come first: they decay, norm weights do not. What is trained while the backbone is
// frozen comes before them.
struct ParameterLayout {
  struct Block {
    int64_t qkv, o, gate_up, down;  // [qkv, H], [H, q], [2F, H], [H, F]
    NormOffsets norm1, norm2;       // [H]
    int64_t q_norm, k_norm;         // [head size], with qk_norm
  };
  struct MedusaHead {
    int64_t residual, head;  // [H, H], [V, H]
  };
  int64_t embedding, head;  // [V, H]; the same when tied
  std::vector<Block> blocks;
  NormOffsets final_norm;
  std::vector<MedusaHead> medusa;
  std::vector<Parameter> parameters;  // in the order of their offsets
  int64_t trained = 0;                // elements that have a gradient
  int64_t decayed = 0;                // elements of matrices
  int64_t total = 0;
  explicit ParameterLayout(const ModelConfig& config);

 private:
  int64_t take(std::string name, Initial initial, int64_t rows, int64_t columns);
  NormOffsets take_norm(const ModelConfig& config, const std::string& name);
};

}  // namespace tigon::convergence
