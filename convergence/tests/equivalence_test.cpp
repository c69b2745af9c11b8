// SPDX-License-Identifier: Apache-2.0
// Two one-sided tests: quantiles of the tables, and what they show and do not show.
#include "convergence/equivalence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

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
  // Means 2 and 3, pooled variance (2 + 2) / 4 = 1, error sqrt(2 / 3), t(0.95, 4) = 2.1318.
  const Equivalence e = two_one_sided_tests("x", {1, 2, 3}, {2, 3, 4}, 3.0, 0.95);
  EXPECT_NEAR(e.difference, 1.0, 1e-12);
  EXPECT_NEAR(e.upper, 1.0 + 2.1318 * std::sqrt(2.0 / 3), 1e-4);
  EXPECT_NEAR(e.lower, 1.0 - 2.1318 * std::sqrt(2.0 / 3), 1e-4);
  EXPECT_TRUE(e.shown());
  EXPECT_FALSE(two_one_sided_tests("x", {1, 2, 3}, {2, 3, 4}, 2.7, 0.95).shown());
}

// No difference seen is not equivalence shown.
TEST(Equivalence, AWideSpreadShowsNothing) {
  EXPECT_FALSE(two_one_sided_tests("x", {1, 9, 5}, {5, 1, 9}, 1.0, 0.95).shown());
  EXPECT_TRUE(two_one_sided_tests("x", {5, 5.1, 4.9}, {5, 5.1, 4.9}, 1.0, 0.95).shown());
}

TEST(Equivalence, WhatIsNotFiniteIsNotShown) {
  EXPECT_FALSE(two_one_sided_tests("x", {1, 1, std::nan("")}, {1}, 1.0, 0.95).shown());
  EXPECT_FALSE(two_one_sided_tests("x", {1, 1, 1}, {HUGE_VAL}, 1.0, 0.95).shown());
}

// Groups that differ by just the margin pass in 5 of 100 trials.
TEST(Equivalence, FalseProofsAreAsRareAsPromised) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  constexpr int kTrials = 4000;
  int shown = 0;
  for (int i = 0; i < kTrials; ++i) {
    std::vector<double> a(6), b(3);
    for (double& x : a) x = normal(random);
    for (double& x : b) x = normal(random) + 4.0;
    shown += two_one_sided_tests("x", a, b, 4.0, 0.95).shown();
  }
  EXPECT_NEAR(shown / static_cast<double>(kTrials), 0.05, 0.012);
}

}  // namespace
}  // namespace tigon::convergence
