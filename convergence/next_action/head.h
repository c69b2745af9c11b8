// SPDX-License-Identifier: Apache-2.0
// The head on a CPU: how highly a network's last hidden states rank what came next.
#pragma once
#include <cstdint>
#include <vector>

namespace tigon::convergence::next_action {

// logits[i, v] = bias[v] + sum_h hidden[i, h] weight[v, h]
struct Head {
  const float* weight;  // [V, H]
  const float* bias;    // [V], or nullptr
  int64_t vocabulary, width;
};

// For each row of hidden [rows, H] how many other resources have a logit above that of the row's
// target or, with a smaller number, one as high; 0 for a negative target. Not a number ranks last.
std::vector<int> ranks(const Head& head, const float* hidden, const std::vector<int32_t>& targets);

}  // namespace tigon::convergence::next_action
