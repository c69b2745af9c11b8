// SPDX-License-Identifier: Apache-2.0
// Counting predictors against counts by hand.
#include "convergence/next_action/counts.h"

#include <gtest/gtest.h>

namespace tigon::convergence::next_action {
namespace {

using List = std::vector<int32_t>;

// 1 2 3 twice and 4 2 5 once: after 2 most often 3, after 4 2 always 5.
const std::vector<Sequence> kTrain = {{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 4, 2, 5}};

List first(List list, size_t n) { return list.resize(n), list; }

TEST(NGrams, CountTheLongestKnownContext) {
  const NGrams n(kTrain, 4);
  const List past = {0, 4, 2};
  EXPECT_EQ(first(n.likeliest(past, 1), 1), (List{2}));  // the first of a learner does not count
  EXPECT_EQ(first(n.likeliest(past, 2), 2), (List{3, 5}));
  EXPECT_EQ(first(n.likeliest(past, 3), 2), (List{5, 3}));
  EXPECT_EQ(first(n.likeliest(past, 4), 2), (List{5, 3}));
}

TEST(NGrams, BackOffWhereAContextIsNew) {
  const NGrams n(kTrain, 4);
  EXPECT_EQ(first(n.likeliest(List{5, 2}, 4), 2), (List{3, 5}));
  EXPECT_EQ(n.likeliest(List{5, 9}, 4), n.likeliest(List{5, 9}, 1));
  EXPECT_EQ(n.likeliest(List{0}, 4).size(), 5u);  // all that ever followed, each once
}

TEST(NGrams, ShorterContextsDecideTies) {
  // After 1 2 once 3 and once 4; after 2 alone 4 is more frequent.
  const NGrams n({{0, 1, 2, 4}, {0, 1, 2, 3}, {0, 5, 2, 4}}, 3);
  EXPECT_EQ(first(n.likeliest(List{1, 2}, 3), 2), (List{4, 3}));
}

TEST(NGrams, AreScoredOnOtherLearners) {
  const NGrams n(kTrain, 3);
  const std::vector<Sequence> others = {{0, 4, 2, 5}, {0, 1}};
  EXPECT_EQ(n.score(others, 1)[0].predicted, 3);
  EXPECT_EQ(n.score(others, 1)[0].top1, 1);  // 2 is the most frequent
  EXPECT_EQ(n.score(others, 2)[0].top1, 1);  // 2 after 4
  EXPECT_EQ(n.score(others, 3)[0].top1, 2);  // and 5 after 4 2
  EXPECT_EQ(n.score(others, 3)[1].top1, 1);
}

TEST(NGrams, KnowHowMuchTheyCounted) {
  const NGrams n(kTrain, 2);
  EXPECT_EQ(n.entries(1), 5);      // 1, 2, 3, 4, 5
  EXPECT_EQ(n.entries(2), 5 + 6);  // 0 1, 0 4, 1 2, 4 2, 2 3, 2 5
}

TEST(Syllabus, GuessesTheNextResource) {
  const auto scores = score_syllabus({1, 2, 3, 0}, {{0, 1, 2, 0}});
  EXPECT_EQ(scores[0].predicted, 3);
  EXPECT_EQ(scores[0].top1, 2);
  EXPECT_EQ(scores[0].top10, 3);
}

}  // namespace
}  // namespace tigon::convergence::next_action
