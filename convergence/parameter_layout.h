// Where each parameter of a model begins in the flat arrays of weights, gradients and optimizer
// state.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "convergence/model_config.h"

namespace tigon::convergence {

struct Parameter {
  std::string name;  // "embedding", "layers.0.qkv", ...
  int64_t offset, rows, columns;
  int64_t size() const { return rows * columns; }
};

// Matrices come first: they decay, norm weights do not.
struct ParameterLayout {
  struct Block {
    int64_t qkv, o, gate_up, down;  // [qkv, H], [H, q], [2F, H], [H, F]
    int64_t norm1, norm2;           // [H]
  };
  int64_t embedding, head;  // [V, H]; the same when tied
  std::vector<Block> blocks;
  int64_t final_norm;
  std::vector<Parameter> parameters;  // in the order of their offsets
  int64_t decayed = 0;                // elements of matrices
  int64_t total = 0;
  explicit ParameterLayout(const ModelConfig& config);
};

}  // namespace tigon::convergence
