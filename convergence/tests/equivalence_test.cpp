// SPDX-License-Identifier: Apache-2.0
// Two one-sided tests: quantiles of the tables, and what they show and do not show.
#include "convergence/equivalence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "convergence/statistics.h"

namespace tigon::convergence {
namespace {

TEST(StudentT, QuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(student_t(0.95, 1), 6.3138, 1e-4);
  EXPECT_NEAR(student_t(0.95, 2), 2.9200, 1e-4);
  EXPECT_NEAR(student_t(0.95, 3), 2.3534, 1e-4);
  EXPECT_NEAR(student_t(0.95, 5), 2.0150, 1e-4);
  EXPECT_NEAR(student_t(0.95, 7), 1.8946, 1e-4);
  EXPECT_NEAR(student_t(0.975, 10), 2.2281, 1e-4);
  EXPECT_NEAR(student_t(0.99, 30), 2.4573, 1e-4);
}

TEST(Equivalence, IntervalIsTheOneOfTheTextbook) {
  // Mean 2, variance (4 + 0 + 4) / 2 = 4, error sqrt(4 / 3), t(0.95, 2) = 2.9200.
  const double error = std::sqrt(4.0 / 3);
  const Equivalence e = two_one_sided_tests("x", {0, 2, 4}, 6.0, 0.95);
  EXPECT_NEAR(e.difference, 2.0, 1e-12);
  EXPECT_NEAR(e.upper, 2.0 + 2.9200 * error, 1e-4);
  EXPECT_NEAR(e.lower, 2.0 - 2.9200 * error, 1e-4);
  // 1.2816 sqrt(1 + 2.92^2 / 4) - 2.92 (1 - 1 / 8)
  EXPECT_NEAR(e.noticed, 6.0 - 0.28688 * error, 1e-3);
  EXPECT_TRUE(e.shown());
  EXPECT_FALSE(two_one_sided_tests("x", {0, 2, 4}, 5.3, 0.95).shown());
}

// No difference seen is not equivalence shown.
TEST(Equivalence, AWideSpreadShowsNothing) {
  EXPECT_FALSE(two_one_sided_tests("x", {4, -4, 0}, 1.0, 0.95).shown());
  EXPECT_TRUE(two_one_sided_tests("x", {0.1, -0.1, 0}, 1.0, 0.95).shown());
}

TEST(Equivalence, WhatIsNotFiniteIsNotShown) {
  EXPECT_FALSE(two_one_sided_tests("x", {0, 0, std::nan("")}, 1.0, 0.95).shown());
  EXPECT_FALSE(two_one_sided_tests("x", {0, 0, HUGE_VAL}, 1.0, 0.95).shown());
}

// How many of the trials are not shown equivalent when the pairs differ by so much.
double share_not_shown(double shift) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  constexpr int kTrials = 4000;
  int shown = 0;
  for (int i = 0; i < kTrials; ++i) {
    std::vector<double> d(5);
    for (double& x : d) x = normal(random) + shift;
    shown += two_one_sided_tests("x", d, 4.0, 0.95).shown();
  }
  return 1 - shown / static_cast<double>(kTrials);
}

// Pairs that differ by just the margin pass in 5 of 100 trials.
TEST(Equivalence, FalseProofsAreAsRareAsPromised) {
  EXPECT_NEAR(share_not_shown(4.0), 0.95, 0.012);
}

TEST(Equivalence, TheShiftThatIsNoticedInNineOfTenIs) {
  // Differences whose mean has the deviation of five normal numbers' mean.
  const double a = std::sqrt(2.0);
  const Equivalence e = two_one_sided_tests("x", {a, -a, 0, 0, 0}, 4.0, 0.95);
  EXPECT_NEAR(share_not_shown(e.noticed), 0.9, 0.02);
}

}  // namespace
}  // namespace tigon::convergence
