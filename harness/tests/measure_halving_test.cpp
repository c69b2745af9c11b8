// SPDX-License-Identifier: Apache-2.0
// The search of `tigon tune` on made-up measurements.
#include "harness/measure/halving.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace tigon {
namespace {

// Times of the candidates with 5% noise that falls with the number of samples.
class FakeMachine {
 public:
  explicit FakeMachine(std::vector<double> times) : times_(std::move(times)) {}
  std::vector<double> operator()(const std::vector<size_t>& candidates, size_t samples) {
    std::normal_distribution<double> noise(0, 0.05 / std::sqrt(static_cast<double>(samples)));
    std::vector<double> medians;
    for (size_t c : candidates) {
      measured[c] += samples;
      medians.push_back(times_[c] * (1 + noise(random_)));
    }
    return medians;
  }
  std::map<size_t, size_t> measured;  // samples by candidate

 private:
  std::vector<double> times_;
  std::mt19937 random_{7};
};

TEST(Halving, finds_the_fastest) {
  FakeMachine machine({5, 4, 3, 1, 2, 6, 7, 8, 9});
  const Halving h = halve(9, 8, std::ref(machine));
  EXPECT_EQ(h.winner, 3u);
  EXPECT_NEAR(h.before / h.after, 9, 1);
  EXPECT_EQ(h.rounds.front().size(), 9u);
  EXPECT_EQ(h.rounds.back(), (std::vector<size_t>{8, 3}));
}

TEST(Halving, measures_the_better_ones_longer) {
  FakeMachine machine({5, 4, 3, 1, 2, 6, 7, 8, 9});
  halve(9, 0, std::ref(machine));
  EXPECT_EQ(machine.measured.at(7), 5u);
  EXPECT_GE(machine.measured.at(3), 41u);
}

TEST(Halving, keeps_the_incumbent_where_nothing_is_faster_by_the_margin) {
  FakeMachine machine({1, 0.999, 1.001, 1});
  EXPECT_EQ(halve(4, 2, std::ref(machine), {.margin = 0.1}).winner, 2u);
}

TEST(Halving, a_candidate_that_cannot_run_does_not_win) {
  FakeMachine machine({std::numeric_limits<double>::infinity(), 2, 1});
  EXPECT_EQ(halve(3, 1, std::ref(machine)).winner, 2u);
}

TEST(Halving, one_candidate_is_the_incumbent) {
  FakeMachine machine({3});
  const Halving h = halve(1, 0, std::ref(machine));
  EXPECT_EQ(h.winner, 0u);
  EXPECT_EQ(h.before, h.after);
}

}  // namespace
}  // namespace tigon
