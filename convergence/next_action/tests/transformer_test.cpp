// SPDX-License-Identifier: Apache-2.0
// Windows of learners, and a transformer on the fused kernels that learns from them.
#include "convergence/next_action/transformer.h"

#include <gtest/gtest.h>

#include "convergence/next_action/windows.h"

namespace tigon::convergence::next_action {
namespace {

// Learner i goes through i % 3, i % 3 + 3, i % 3 + 6, ... below 30.
std::vector<Sequence> striding_learners(size_t count) {
  std::vector<Sequence> learners;
  for (size_t i = 0; i < count; ++i) {
    Sequence s;
    for (auto a = static_cast<int32_t>(i % 3); a < 30; a += 3) s.push_back(a);
    learners.push_back(s);
  }
  return learners;
}

// How often each action of each learner is a target that counts.
template <class Windows>
std::vector<std::vector<int>> counted(const std::vector<Sequence>& learners, const Windows& all) {
  std::vector<std::vector<int>> times;
  for (const Sequence& s : learners) times.emplace_back(s.size(), 0);
  for (const Window& w : all)
    for (int64_t t = w.counted; t < w.inputs; ++t)
      ++times[w.learner][static_cast<size_t>(w.begin + t + 1)];
  return times;
}

TEST(Windows, CountEveryActionButTheFirstOnce) {
  const std::vector<Sequence> learners = striding_learners(7);
  for (int sequence : {1, 2, 3, 4, 9, 16})
    for (const auto& all :
         {scoring_windows(learners, sequence), training_windows(learners, sequence, 1, 0)}) {
      for (const auto& times : counted(learners, all)) {
        EXPECT_EQ(times[0], 0);
        for (size_t t = 1; t < times.size(); ++t) EXPECT_EQ(times[t], 1) << sequence << ' ' << t;
      }
      for (const Window& w : all) {
        EXPECT_GE(w.inputs, 1);
        EXPECT_LE(w.inputs, sequence);
      }
    }
}

TEST(Windows, ScoringGivesHalfAWindowOfPast) {
  for (const Window& w : scoring_windows(striding_learners(3), 4))
    EXPECT_EQ(w.counted, w.begin == 0 ? 0 : 2);
}

TEST(Windows, AreCutAnewEachEpoch) {
  const std::vector<Sequence> learners = striding_learners(30);
  const auto first = training_windows(learners, 4, 1, 0),
             second = training_windows(learners, 4, 1, 1);
  const auto again = training_windows(learners, 4, 1, 1);
  const auto text = [&](const std::vector<Window>& windows) {
    return batch_of(learners, windows, 0, 20, 4).input;
  };
  EXPECT_NE(text(first), text(second));
  EXPECT_EQ(text(second), text(again));
}

TEST(Windows, PaddingIsIgnored) {
  const std::vector<Sequence> learners = {{5, 6, 7}};
  const Batch b = batch_of(learners, {{0, 0, 2, 0}}, 0, 2, 3);
  EXPECT_EQ(b.input, (std::vector<int64_t>{5, 6, 0, 0, 0, 0}));
  EXPECT_EQ(b.target, (std::vector<int64_t>{6, 7, -100, -100, -100, -100}));
  EXPECT_EQ(b.order, (std::vector<int32_t>{2, 3, 4, 5, 0, 1}));
  EXPECT_EQ(b.first, (std::vector<int32_t>{0, 4, 5, 6, 6, 6, 6}));
}

// A vocabulary that is no multiple of anything.
TEST(Transformer, LearnsOnTheFusedKernels) {
  Sequences s;
  s.vocabulary = 31;
  s.train = striding_learners(12);
  s.held_out = striding_learners(5);
  ModelConfig config = transformer_config(s.vocabulary);
  config.sequence = 8;
  config.batch = 4;
  config.steps = 80;
  config.warm_up = 5;
  double last = 0;
  const TransformerResult result =
      transformer(s, config, 1, [&](int, double loss) { return last = loss, true; });
  EXPECT_LT(last, 0.3);
  ASSERT_EQ(result.hits.size(), 5u);
  for (const Hits& h : result.hits) {
    EXPECT_EQ(h.predicted, 9);
    EXPECT_EQ(h.top1, 9);
  }
  EXPECT_GT(result.parameters, 31 * 64);
}

TEST(Transformer, StopsWhenAsked) {
  Sequences s;
  s.vocabulary = 31;
  s.train = s.held_out = striding_learners(3);
  ModelConfig config = transformer_config(s.vocabulary);
  config.sequence = 8;
  int steps = 0;
  EXPECT_TRUE(transformer(s, config, 1, [&](int, double) { return ++steps < 2; }).hits.empty());
  EXPECT_EQ(steps, 2);
}

}  // namespace
}  // namespace tigon::convergence::next_action
