// Offsets of the parameters.
#include "convergence/parameter_layout.h"

#include <fmt/format.h>

namespace tigon::convergence {

ParameterLayout::ParameterLayout(const ModelConfig& c) {
  constexpr int64_t kAlign = 128;  // elements: 256 bytes in 16-bit types; the gaps stay 0
  const auto take = [&](std::string name, int64_t rows, int64_t columns) {
    parameters.push_back({std::move(name), total, rows, columns});
    total += (rows * columns + kAlign - 1) / kAlign * kAlign;
    return parameters.back().offset;
  };
  const auto of_layer = [](int l, const char* name) {
    return fmt::format("layers.{}.{}", l, name);
  };
  embedding = take("embedding", c.vocabulary, c.hidden);
  head = c.tied ? embedding : take("head", c.vocabulary, c.hidden);
  for (int l = 0; l < c.layers; ++l) {
    Block block{};
    block.qkv = take(of_layer(l, "qkv"), c.qkv_size(), c.hidden);
    block.o = take(of_layer(l, "o"), c.hidden, c.q_size());
    block.gate_up = take(of_layer(l, "gate_up"), int64_t{2} * c.intermediate, c.hidden);
    block.down = take(of_layer(l, "down"), c.hidden, c.intermediate);
    blocks.push_back(block);
  }
  decayed = total;
  for (int l = 0; l < c.layers; ++l) {
    Block& block = blocks[static_cast<size_t>(l)];
    block.norm1 = take(of_layer(l, "norm1"), 1, c.hidden);
    block.norm2 = take(of_layer(l, "norm2"), 1, c.hidden);
  }
  final_norm = take("final_norm", 1, c.hidden);
}

}  // namespace tigon::convergence
