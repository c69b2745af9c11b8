// SPDX-License-Identifier: Apache-2.0
// Offsets of the parameters.
#include "convergence/parameter_layout.h"

#include <fmt/format.h>

namespace tigon::convergence {

int64_t ParameterLayout::take(std::string name, Initial initial, int64_t rows, int64_t columns) {
  constexpr int64_t kAlign = 128;  // elements: 256 bytes in 16-bit types; the gaps stay 0
  parameters.push_back({std::move(name), initial, total, rows, columns});
  total += (rows * columns + kAlign - 1) / kAlign * kAlign;
  return parameters.back().offset;
}

NormOffsets ParameterLayout::take_norm(const ModelConfig& c, const std::string& name) {
  NormOffsets norm{take(name, Initial::kNormWeight, 1, c.hidden), -1};
  if (c.norm == NormKind::kLayerNorm) norm.bias = take(name + "_bias", Initial::kZero, 1, c.hidden);
  return norm;
}

ParameterLayout::ParameterLayout(const ModelConfig& c) {
  constexpr Initial kRandom = Initial::kRandom, kIntoResidual = Initial::kRandomIntoResidual;
  const auto of_layer = [](int l, const char* name) {
    return fmt::format("layers.{}.{}", l, name);
  };
  for (int k = 0; k < c.medusa; ++k) {
    const int64_t residual =
        take(fmt::format("medusa.{}.residual", k), Initial::kZero, c.hidden, c.hidden);
    medusa.push_back(
        {residual, take(fmt::format("medusa.{}.head", k), kRandom, c.vocabulary, c.hidden)});
  }
  trained = total;
  embedding = take("embedding", kRandom, c.vocabulary, c.hidden);
  head = c.tied ? embedding : take("head", kRandom, c.vocabulary, c.hidden);
  for (int l = 0; l < c.layers; ++l) {
    Block block{};
    block.qkv = take(of_layer(l, "qkv"), kRandom, c.qkv_size(), c.hidden);
    block.o = take(of_layer(l, "o"), kIntoResidual, c.hidden, c.q_size());
    block.gate_up = take(of_layer(l, "gate_up"), kRandom, int64_t{2} * c.intermediate, c.hidden);
    block.down = take(of_layer(l, "down"), kIntoResidual, c.hidden, c.intermediate);
    blocks.push_back(block);
  }
  decayed = total;
  for (int l = 0; l < c.layers; ++l) {
    Block& block = blocks[static_cast<size_t>(l)];
    block.norm1 = take_norm(c, of_layer(l, "norm1"));
    block.norm2 = take_norm(c, of_layer(l, "norm2"));
    if (!c.qk_norm) continue;
    block.q_norm = take(of_layer(l, "q_norm"), Initial::kNormWeight, 1, c.head_size);
    block.k_norm = take(of_layer(l, "k_norm"), Initial::kNormWeight, 1, c.head_size);
  }
  final_norm = take_norm(c, "final_norm");
  if (!c.frozen) trained = total;
}

}  // namespace tigon::convergence
