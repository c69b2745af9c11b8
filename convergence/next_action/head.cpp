// SPDX-License-Identifier: Apache-2.0
// Blocks of logits by Eigen, dealt to threads.
#include "convergence/next_action/head.h"

#include <Eigen/Core>
#include <algorithm>

#include "convergence/threads.h"

namespace tigon::convergence::next_action {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

int rank(const float* logits, int64_t count, int32_t target) {
  const float own = logits[target];
  int above = 0;
  for (int64_t v = 0; v < target; ++v) above += !(logits[v] < own);
  for (int64_t v = target + 1; v < count; ++v) above += !(logits[v] <= own);
  return above;
}

}  // namespace

std::vector<int> ranks(const Head& head, const float* hidden, const std::vector<int32_t>& targets) {
  constexpr int64_t kRows = 64;
  const auto rows = static_cast<int64_t>(targets.size());
  const Eigen::Map<const Matrix> weight(head.weight, head.vocabulary, head.width);
  std::vector<int> result(targets.size(), 0);
  parallel_for(static_cast<int>((rows + kRows - 1) / kRows), [&](int block) {
    const int64_t first = block * kRows, count = std::min(kRows, rows - first);
    const Eigen::Map<const Matrix> x(hidden + first * head.width, count, head.width);
    Matrix logits = x * weight.transpose();
    if (head.bias != nullptr)
      logits.rowwise() += Eigen::Map<const Eigen::RowVectorXf>(head.bias, head.vocabulary);
    for (int64_t i = 0; i < count; ++i) {
      const int32_t target = targets[static_cast<size_t>(first + i)];
      if (target >= 0)
        result[static_cast<size_t>(first + i)] =
            rank(logits.data() + i * head.vocabulary, head.vocabulary, target);
    }
  });
  return result;
}

}  // namespace tigon::convergence::next_action
