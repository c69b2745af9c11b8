// SPDX-License-Identifier: Apache-2.0
// Intervals clustered by learner: worked examples, and how often they hold the truth.
#include "convergence/next_action/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "convergence/text_data.h"

namespace tigon::convergence::next_action {
namespace {

TEST(Hits, CountRanks) {
  Hits h;
  for (int rank : {0, 1, 9, 10, 500}) h.add(rank);
  EXPECT_EQ(h.predicted, 5);
  EXPECT_EQ(h.top1, 1);
  EXPECT_EQ(h.top10, 3);
  EXPECT_EQ(rank_in({7, 5}, 5), 1);
  EXPECT_EQ(rank_in({7, 5}, 6), kTop);
}

// By hand: 3 learners of 10 actions with 5, 6 and 7 hits. Their deviations are -1, 0 and 1; the
// standard error is sqrt(3 / 2 * 2) / 30 and t(0.975, 2) = 4.302653.
TEST(Accuracy, IsARatioWithAnIntervalOverLearners) {
  const std::vector<Hits> learners = {{10, 5, 8}, {10, 6, 8}, {10, 7, 8}};
  const Estimate e = accuracy(learners, &Hits::top1);
  EXPECT_DOUBLE_EQ(e.value, 0.6);
  EXPECT_NEAR(e.width(), 2 * 4.302653 * std::sqrt(3.0) / 30, 1e-6);
  EXPECT_DOUBLE_EQ(accuracy(learners, &Hits::top10).width(), 0);
  EXPECT_TRUE(std::isinf(accuracy({{10, 5, 8}}, &Hits::top1).width()));
}

// A predictor that is 2 points better for every learner is so beyond doubt, however the learners
// differ.
TEST(Gap, PairsLearners) {
  std::vector<Hits> worse, better;
  for (int64_t i = 0; i < 20; ++i) {
    worse.push_back({100, 40 + i, 90});
    better.push_back({100, 42 + i, 90});
  }
  const Estimate g = gap(better, worse, &Hits::top1);
  EXPECT_NEAR(g.value, 0.02, 1e-12);
  EXPECT_NEAR(g.width(), 0, 1e-12);
  EXPECT_GT(accuracy(better, &Hits::top1).width(), 0.05);
}

// Each learner has an accuracy of its own; an interval that counted actions as independent would
// hold the truth in about 40 % of the cases.
TEST(Accuracy, HoldsTheTruthIn95PercentOfTrials) {
  constexpr uint64_t kTrials = 2000, kLearners = 20, kActions = 200;
  int held = 0;
  for (uint64_t trial = 0; trial < kTrials; ++trial) {
    std::vector<Hits> learners(kLearners);
    for (uint64_t i = 0; i < kLearners; ++i) {
      const uint64_t own = 40 + random_bits(trial, i, 0) % 41;  // percent, 60 in the mean
      for (uint64_t t = 1; t <= kActions; ++t)
        learners[i].add(random_bits(trial, i, t) % 100 < own ? 0 : kTop);
    }
    const Estimate e = accuracy(learners, &Hits::top1);
    held += e.low <= 0.6 && 0.6 <= e.high;
  }
  EXPECT_NEAR(static_cast<double>(held) / kTrials, 0.95, 0.02);
}

}  // namespace
}  // namespace tigon::convergence::next_action
