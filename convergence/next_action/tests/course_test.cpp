// SPDX-License-Identifier: Apache-2.0
// Made-up learners: the same everywhere, and they follow the law that the generator tells.
#include "convergence/next_action/course.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "convergence/next_action/sequences.h"

namespace tigon::convergence::next_action {
namespace {

uint64_t hash_of(const std::vector<Learner>& learners) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const Learner& l : learners)
    for (int32_t action : l.actions) h = (h ^ static_cast<uint64_t>(action)) * 0x100000001b3u;
  return h;
}

// Integer arithmetic only: these numbers hold on every machine.
TEST(Course, SameSeedSameActions) {
  EXPECT_EQ(hash_of(certified_learners(Course{}, 20, 1)), 4419644369913337718u);
  EXPECT_EQ(hash_of(certified_learners(Course{}, 20, 2)), 10917388503728843701u);
}

TEST(Course, LearnersDoNotDependOnHowManyThereAre) {
  const std::vector<Learner> few = certified_learners(Course{}, 5, 3);
  const std::vector<Learner> many = certified_learners(Course{}, 9, 3);
  for (size_t i = 0; i < few.size(); ++i) EXPECT_EQ(few[i].actions, many[i].actions);
}

TEST(Course, HasMoreThan3500ResourcesAndAllAreUsed) {
  std::set<int32_t> used;
  for (const Learner& l : certified_learners(Course{}, 600, 1))
    used.insert(l.actions.begin(), l.actions.end());
  EXPECT_GT(Course{}.resources(), 3500);
  EXPECT_GT(used.size(), 3500u);
  EXPECT_GE(*used.begin(), 0);
  EXPECT_LT(*used.rbegin(), Course{}.resources());
}

TEST(Law, IsADistributionOverDifferentResources) {
  const Habits habits{40000, 9000, 20000, 30000, 15000, 8000, 20000, 30000, 5000, 4000};
  for (int32_t action = 0; action < kActions; ++action)
    for (int32_t review : {0, 1, 2})
      for (bool seen : {false, true}) {
        const Place at{7, static_cast<Action>(action), 11, review, seen, !seen};
        std::set<int32_t> resources;
        uint32_t sum = 0;
        for (const Choice& c : law(at, habits)) {
          resources.insert(c.place.resource());
          sum += c.weight;
        }
        EXPECT_EQ(resources.size(), law(at, habits).size());
        EXPECT_LE(sum, kOne);
        EXPECT_GE(sum, kOne - 32);
      }
}

// The first persona, which all learners have without personas.
Habits first_persona() {
  const auto p = [](uint32_t x) { return x * kOne / 100; };
  return {p(95), p(3), p(30), p(90), p(15), p(3), p(30), p(85), p(1), p(2)};
}

// Walks the law along a learner's actions: each is one of its choices, and what the likeliest of
// them are expected to hit is what the learner says.
TEST(Law, SaysWhatCanBeExpectedOfALearner) {
  Course course;
  course.personas = false;
  for (const Learner& l : certified_learners(course, 5, 5)) {
    Place at;
    at.unit = at.frontier = l.actions[0] / kActions;
    double top1 = 0;
    for (size_t t = 1; t < l.actions.size(); ++t) {
      uint32_t sum = 0, most = 0;
      const Choice* taken = nullptr;
      const std::vector<Choice> choices = law(at, first_persona());
      for (const Choice& c : choices) {
        sum += c.weight;
        most = std::max(most, c.weight);
        if (c.place.resource() == l.actions[t]) taken = &c;
      }
      ASSERT_NE(taken, nullptr) << t;
      at = taken->place;
      top1 += static_cast<double>(most) / sum;
    }
    const auto steps = static_cast<double>(l.actions.size() - 1);
    EXPECT_EQ(l.expected.predicted, static_cast<int64_t>(steps) * kOne);
    EXPECT_NEAR(static_cast<double>(l.expected.top1) / kOne, top1, steps / kOne);
    EXPECT_GE(l.expected.top10, l.expected.top1);
    EXPECT_LE(l.expected.top10, l.expected.predicted);
  }
}

// What learners do agrees with the law: how often the likeliest resource comes is how likely it is.
TEST(Law, IsWhatLearnersFollow) {
  Course course;
  course.personas = false;
  int64_t plays = 0, pauses = 0;
  for (const Learner& l : certified_learners(course, 200, 5))
    for (size_t t = 1; t < l.actions.size(); ++t)
      if (l.actions[t - 1] % kActions == kPlayFirst) {
        ++plays;
        pauses += l.actions[t] % kActions == kPauseFirst;
      }
  const double share = static_cast<double>(pauses) / static_cast<double>(plays);
  EXPECT_NEAR(share, static_cast<double>(first_persona().pause) / kOne, 0.012);
  EXPECT_GT(plays, 15000);
}

TEST(Sequences, HoldOutAFifthAndATenthToChooseBy) {
  const Sequences s = made_up(Course{}, 50, 1);
  EXPECT_EQ(s.train.size(), 35u);
  EXPECT_EQ(s.validation.size(), 5u);
  EXPECT_EQ(s.held_out.size(), 10u);
  EXPECT_NE(parts(50, 1), parts(50, 2));
  std::multiset<Sequence> dealt;
  for (const auto* part : {&s.train, &s.validation, &s.held_out})
    dealt.insert(part->begin(), part->end());
  std::multiset<Sequence> all;
  for (const Learner& l : certified_learners(Course{}, 50, 1)) all.insert(l.actions);
  EXPECT_EQ(dealt, all);
}

TEST(Sequences, KnowTheirBound) {
  const Sequences s = made_up(Course{}, 50, 1);
  ASSERT_EQ(s.bound.size(), 10u);
  for (size_t i = 0; i < s.bound.size(); ++i)
    EXPECT_EQ(s.bound[i].predicted, (static_cast<int64_t>(s.held_out[i].size()) - 1) * kOne);
  const double bound = accuracy(s.bound, &Hits::top1).value;
  EXPECT_GT(bound, 0.7);
  EXPECT_LT(bound, 0.9);
  EXPECT_GT(accuracy(s.bound, &Hits::top10).value, 0.99);
}

TEST(Sequences, ShufflingKeepsActionsAndLengths) {
  const Sequences before = made_up(Course{}, 10, 1), after = shuffled(before, 1);
  std::map<int32_t, int> count;
  for (const auto* part : {&before.train, &before.validation, &before.held_out})
    for (const Sequence& s : *part)
      for (int32_t a : s) ++count[a];
  for (const auto* part : {&after.train, &after.validation, &after.held_out})
    for (const Sequence& s : *part)
      for (int32_t a : s) --count[a];
  for (const auto& [action, n] : count) EXPECT_EQ(n, 0) << action;
  EXPECT_NE(before.train, after.train);
  EXPECT_EQ(before.held_out[0].size(), after.held_out[0].size());
}

}  // namespace
}  // namespace tigon::convergence::next_action
