// SPDX-License-Identifier: Apache-2.0
// LSTM: gradients against differences, what it can remember, and the same weights from the same
// seed.
#include "convergence/next_action/lstm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "convergence/next_action/head.h"
#include "convergence/next_action/lanes.h"
#include "convergence/text_data.h"

namespace tigon::convergence::next_action {
namespace {

// Of several lengths, so that lanes end and begin inside of a window.
std::vector<Sequence> random_learners(size_t count, int32_t vocabulary) {
  std::vector<Sequence> learners;
  for (uint64_t i = 0; i < count; ++i) {
    Sequence s;
    for (uint64_t t = 0; t < 3 + i % 4; ++t)
      s.push_back(static_cast<int32_t>(random_bits(9, i, t) % static_cast<uint64_t>(vocabulary)));
    learners.push_back(s);
  }
  return learners;
}

class LstmGradient : public testing::TestWithParam<int> {};

TEST_P(LstmGradient, AgreesWithDifferences) {
  LstmSettings settings;
  settings.layers = GetParam();
  settings.embedding = 5;
  settings.hidden = 6;
  settings.lanes = 4;
  settings.window = 8;
  Lstm lstm(7, settings);
  const std::vector<Sequence> learners = random_learners(11, 7);
  Floats& w = lstm.weights();
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = static_cast<float>(random_bits(3, 1, i) % 2001) / 1000.0f - 1.0f;
  Floats gradient, other;
  lstm.gradient(learners, gradient);
  double largest = 0;
  for (float g : gradient) largest = std::max(largest, std::abs(static_cast<double>(g)));
  EXPECT_GT(largest, 0.01);
  constexpr float kStep = 0.02f;
  for (size_t i = 0; i < w.size(); ++i) {
    const float before = w[i];
    w[i] = before + kStep;
    const double above = lstm.gradient(learners, other);
    w[i] = before - kStep;
    const double below = lstm.gradient(learners, other);
    w[i] = before;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 3e-4 * largest + 1e-4) << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Layers, LstmGradient, testing::Values(1, 2));

TEST(Lstm, ShardsAddUpToTheSameGradient) {
  const std::vector<Sequence> learners = random_learners(16, 7);
  const auto gradient = [&](int shards) {
    LstmSettings s;
    s.lanes = 8;
    s.shards = shards;
    Floats g;
    Lstm(7, s).gradient(learners, g);
    return g;
  };
  const Floats one = gradient(1), eight = gradient(8);
  for (size_t i = 0; i < one.size(); ++i)
    ASSERT_NEAR(one[i], eight[i], 1e-5f * std::abs(one[i]) + 1e-6f) << i;
}

// The last action repeats the first; those between are always the same.
std::vector<Sequence> learners_with_a_memory(size_t count) {
  std::vector<Sequence> learners;
  for (size_t i = 0; i < count; ++i) {
    const auto own = static_cast<int32_t>(i % 2);
    Sequence s = {own};
    for (int32_t a = 2; a < 8; ++a) s.push_back(a);
    s.push_back(own);
    learners.push_back(s);
  }
  return learners;
}

LstmSettings small_settings() {
  LstmSettings s;
  s.embedding = s.hidden = 16;
  s.lanes = 8;
  s.window = 16;
  s.epochs = 40;
  s.rate = 0.02;
  return s;
}

TEST(Lstm, RemembersTheFirstAction) {
  LstmSettings settings = small_settings();
  settings.epochs = 300;
  settings.rate = 0.015;
  settings.window = 7;
  Lstm lstm(8, settings);
  double last = 0;
  lstm.train(learners_with_a_memory(64), [&](int, double loss) { return last = loss, true; });
  EXPECT_LT(last, 0.02);
  const std::vector<Hits> hits = lstm.score(learners_with_a_memory(5));
  for (const Hits& h : hits) {
    EXPECT_EQ(h.predicted, 7);
    EXPECT_EQ(h.top1, 7);
  }
}

TEST(Lstm, SameSeedSameWeights) {
  const auto weights = [](uint64_t seed) {
    LstmSettings s = small_settings();
    s.epochs = 2;
    s.seed = seed;
    Lstm lstm(8, s);
    lstm.train(learners_with_a_memory(64), [](int, double) { return true; });
    return lstm.weights();
  };
  EXPECT_EQ(weights(1), weights(1));
  EXPECT_NE(weights(1), weights(2));
}

TEST(Lstm, StopsWhenAsked) {
  Lstm lstm(8, small_settings());
  int epochs = 0;
  lstm.train(learners_with_a_memory(8), [&](int, double) { return ++epochs < 3; });
  EXPECT_EQ(epochs, 3);
}

TEST(Lanes, LearnersBeginWhereTheyAreAligned) {
  constexpr int kAlign = 4;
  const std::vector<Sequence> learners = random_learners(10, 7);
  const Lanes lanes(learners, random_order(learners.size(), 1, 1), 3, kAlign);
  size_t begun = 0, targets = 0, want = 0;
  for (const Sequence& s : learners) want += s.size() - 1;
  for (int lane = 0; lane < 3; ++lane)
    for (int64_t step = 0; step < lanes.length(); ++step) {
      const LaneStep& at = lanes.at(lane, step);
      if (at.target < 0) continue;
      ++targets;
      if (!at.fresh) continue;
      EXPECT_EQ(step % kAlign, 0);
      ++begun;
    }
  EXPECT_EQ(begun, learners.size());
  EXPECT_EQ(targets, want);
}

TEST(Lanes, HoldEveryActionOnce) {
  const std::vector<Sequence> learners = random_learners(10, 7);
  const Lanes lanes(learners, random_order(learners.size(), 1, 1), 3);
  std::vector<size_t> seen(learners.size(), 0);
  for (int lane = 0; lane < 3; ++lane)
    for (int64_t step = 0; step < lanes.length() + 5; ++step) {
      const LaneStep& at = lanes.at(lane, step);
      if (at.target < 0) continue;
      size_t& t = seen[static_cast<size_t>(at.learner)];
      const Sequence& s = learners[static_cast<size_t>(at.learner)];
      EXPECT_EQ(at.fresh, t == 0);
      EXPECT_EQ(at.input, s[t]);
      EXPECT_EQ(at.target, s[++t]);
    }
  for (size_t i = 0; i < learners.size(); ++i) EXPECT_EQ(seen[i] + 1, learners[i].size());
}

TEST(Head, RanksByLogitsThenNumbers) {
  const float nan = std::nanf("");
  const std::vector<float> weight = {1, 3, 2, 3}, ones = {1, 1, 1, 1}, bad = {1, nan, 2, 3};
  const Head head{weight.data(), nullptr, 4, 1};
  EXPECT_EQ(ranks(head, ones.data(), {0, 1, 2, 3}), (std::vector<int>{3, 0, 2, 1}));
  EXPECT_EQ(ranks(head, ones.data(), {-1, -100, 2, 1}), (std::vector<int>{0, 0, 2, 0}));
  const std::vector<float> bias = {9, 0, 0, 0};
  EXPECT_EQ(ranks({weight.data(), bias.data(), 4, 1}, ones.data(), {0}), std::vector<int>{0});
  // Not a number hits nothing and is above all others.
  EXPECT_EQ(ranks({bad.data(), nullptr, 4, 1}, ones.data(), {1, 3}), (std::vector<int>{3, 1}));
}

}  // namespace
}  // namespace tigon::convergence::next_action
