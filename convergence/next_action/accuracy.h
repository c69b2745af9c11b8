// SPDX-License-Identifier: Apache-2.0
// Accuracy over held-out learners with intervals clustered by learner: the actions of one learner
// hang together, so learners are what is counted, not actions.
#pragma once
#include <cstdint>
#include <vector>

namespace tigon::convergence::next_action {

inline constexpr int kTop = 10;

// What one learner's actions came to.
struct Hits {
  int64_t predicted = 0, top1 = 0, top10 = 0;
  // `rank` resources were held to be more likely than the one that came.
  void add(int rank) {
    ++predicted;
    top1 += rank == 0;
    top10 += rank < kTop;
  }
};

// The place of `target` among the likeliest resources, kTop when it is not among them.
int rank_in(const std::vector<int32_t>& likeliest, int32_t target);

// With an interval that holds the truth with 95 % confidence; infinite for fewer than two learners.
struct Estimate {
  double value = 0, low = 0, high = 0;
  double width() const { return high - low; }
};

// Share of all actions that were predicted, of Hits::top1 or Hits::top10.
Estimate accuracy(const std::vector<Hits>& learners, int64_t Hits::*which);

// Accuracy of `a` less that of `b` on the same learners, pair by pair.
Estimate gap(const std::vector<Hits>& a, const std::vector<Hits>& b, int64_t Hits::*which);

}  // namespace tigon::convergence::next_action
