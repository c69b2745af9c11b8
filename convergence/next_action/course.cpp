// SPDX-License-Identifier: Apache-2.0
// The law of a learner's next action, and learners who follow it.
#include "convergence/next_action/course.h"

#include <algorithm>
#include <array>
#include <functional>

#include "convergence/text_data.h"

namespace tigon::convergence::next_action {
namespace {

constexpr uint32_t percent(uint32_t p) { return p * kOne / 100; }

// video, problem_first, pause, second_video, retry, forum, browse, second_problem, back, skip
constexpr std::array<std::array<uint32_t, 10>, 5> kPersonas = {{
    {95, 3, 30, 90, 15, 3, 30, 85, 1, 2},   // goes through in order
    {40, 92, 10, 20, 35, 3, 30, 90, 2, 6},  // problems first
    {90, 8, 25, 60, 20, 45, 65, 30, 4, 2},  // asks in the forum
    {60, 12, 15, 30, 70, 6, 30, 60, 2, 4},  // tries until it is right
    {97, 2, 75, 85, 15, 2, 30, 20, 12, 1},  // reviews
}};

Habits from_percent(const std::array<uint32_t, 10>& p) {
  return {percent(p[0]), percent(p[1]), percent(p[2]), percent(p[3]), percent(p[4]),
          percent(p[5]), percent(p[6]), percent(p[7]), percent(p[8]), percent(p[9])};
}

// Random numbers of one learner.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t learner) : seed_(seed), learner_(learner) {}
  // Uniform below `n`, which is small: the bias is under n / 2^32.
  uint32_t below(uint32_t n) {
    constexpr uint64_t kFirstStream = uint64_t{1} << 32;  // others belong to the trainer
    return static_cast<uint32_t>((random_bits(seed_, kFirstStream + learner_, next_++) >> 32) * n >>
                                 32);
  }

 private:
  uint64_t seed_, learner_, next_ = 0;
};

// Odds times (64 + z) / (64 - z), z bell-shaped within 24: a factor of about 0.6 to 1.6.
uint32_t jitter(uint32_t p, Draws& draws) {
  const uint64_t z = draws.below(17) + draws.below(17) + draws.below(17);  // 24 is the middle
  const uint64_t yes = p * (40 + z), no = (kOne - p) * (88 - z);
  return static_cast<uint32_t>(kOne * yes / (yes + no));
}

Habits habits_of(const Course& course, Draws& draws) {
  if (!course.personas) return from_percent(kPersonas[0]);
  Habits h = from_percent(kPersonas[draws.below(kPersonas.size())]);
  for (uint32_t* p : {&h.video, &h.problem_first, &h.pause, &h.second_video, &h.retry, &h.forum,
                      &h.browse, &h.second_problem, &h.back, &h.skip})
    *p = jitter(*p, draws);
  return h;
}

// Shares out kOne among the choices, one decision after the other.
class Sharing {
 public:
  Sharing(const Place& at, const Habits& habits) : at_(at), habits_(habits) {}

  std::vector<Choice> choices() && { return std::move(choices_); }

  static uint32_t part_of(uint32_t weight, uint32_t p) {
    return static_cast<uint32_t>(uint64_t{weight} * p / kOne);
  }
  // Part `p` of `weight`, which becomes the rest.
  static uint32_t take(uint32_t& weight, uint32_t p) {
    const uint32_t part = part_of(weight, p);
    weight -= part;
    return part;
  }

  void act(Action action, uint32_t weight) {
    Place next = at_;
    next.action = action;
    next.seen_video |= action == kLoadFirst;
    next.seen_problem |= action == kProblem;
    add(next, weight);
  }

  void after_videos(uint32_t weight) {
    if (!at_.seen_problem) act(kProblem, take(weight, at_.review > 0 ? kOne / 2 : kOne));
    leave(weight);
  }

  void after_problems(uint32_t weight) {
    if (!at_.seen_video) act(kLoadFirst, take(weight, habits_.video));
    leave(weight);
  }

 private:
  static constexpr int32_t kFurthestBack = 6, kFurthestSkip = 4, kLongestReview = 2;

  void leave(uint32_t weight) {
    if (at_.review > 1) return go(at_.unit + 1, at_.review - 1, weight);
    if (at_.review == 1) return go(at_.frontier + 1, 0, weight);
    uint32_t back = take(weight, habits_.back), skip = take(weight, habits_.skip);
    for (int32_t d = kFurthestBack; d >= 1; --d)
      if (at_.unit >= d)
        go(at_.unit - d, std::min(d, kLongestReview), take(back, kOne / static_cast<uint32_t>(d)));
    for (int32_t d = kFurthestSkip; d >= 2; --d)
      go(at_.unit + d, 0, take(skip, kOne / static_cast<uint32_t>(d - 1)));
    go(at_.unit + 1, 0, weight + back);
  }

  void go(int32_t unit, int32_t review, uint32_t weight) {
    add({.unit = unit, .frontier = std::max(at_.frontier, unit), .review = review}, weight);
  }

  void add(const Place& place, uint32_t weight) {
    if (weight > 0) choices_.push_back({place, weight});
  }

  Place at_;
  Habits habits_;
  std::vector<Choice> choices_;
};

uint32_t sum_of(const std::vector<Choice>& choices) {
  uint32_t all = 0;
  for (const Choice& c : choices) all += c.weight;
  return all;
}

// Adds the chances that the likeliest choice, and one of the ten likeliest, comes next.
void expect(const std::vector<Choice>& choices, Hits& expected) {
  std::vector<uint32_t> weights;
  for (const Choice& c : choices) weights.push_back(c.weight);
  std::ranges::sort(weights, std::greater<>{});
  const uint64_t all = sum_of(choices);
  uint64_t top10 = 0;
  for (size_t i = 0; i < std::min<size_t>(kTop, weights.size()); ++i) top10 += weights[i];
  expected.predicted += kOne;
  expected.top1 += static_cast<int64_t>(uint64_t{kOne} * weights[0] / all);
  expected.top10 += static_cast<int64_t>(kOne * top10 / all);
}

Place drawn(const std::vector<Choice>& choices, Draws& draws) {
  uint32_t at = draws.below(sum_of(choices));
  for (const Choice& c : choices) {
    if (at < c.weight) return c.place;
    at -= c.weight;
  }
  return choices.back().place;
}

}  // namespace

std::vector<Choice> law(const Place& at, const Habits& habits) {
  Sharing s(at, habits);
  uint32_t rest = kOne;
  switch (at.action) {
    case kPage:
      if (at.review > 0) {
        s.act(kLoadFirst, Sharing::take(rest, percent(90)));
      } else {
        const uint32_t in_order = kOne - habits.problem_first;
        s.act(kLoadFirst, Sharing::take(rest, Sharing::part_of(in_order, habits.video)));
      }
      s.act(kProblem, rest);
      break;
    case kLoadFirst:
    case kPauseFirst:
      s.act(kPlayFirst, rest);
      break;
    case kPlayFirst:
      s.act(kPauseFirst, Sharing::take(rest, habits.pause));
      s.act(kLoadSecond, Sharing::take(rest, habits.second_video));
      s.after_videos(rest);
      break;
    case kLoadSecond:
      s.act(kPlaySecond, rest);
      break;
    case kPlaySecond:
      s.after_videos(rest);
      break;
    case kProblem:
      s.act(kCheck, rest);
      break;
    case kCheck:
      s.act(kForum, Sharing::take(rest, habits.forum));
      s.act(kCheck, Sharing::take(rest, habits.retry));
      s.act(kSecondProblem, Sharing::take(rest, habits.second_problem));
      s.after_problems(rest);
      break;
    case kSecondProblem:
      s.after_problems(rest);
      break;
    case kForum:
      s.act(kForum, Sharing::take(rest, habits.browse));
      s.act(kProblem, rest);
      break;
    case kActions:
      break;
  }
  return std::move(s).choices();
}

std::vector<Learner> certified_learners(const Course& course, int count, uint64_t seed) {
  // A learner begins at the start, or late anywhere but at the end, and goes on for a while; those
  // who come far enough are certified.
  const auto units = static_cast<uint32_t>(course.units);
  const uint32_t longest = units / 3, certified = units / 7;
  constexpr uint32_t kLate = 20;  // percent
  std::vector<Learner> learners;
  for (uint64_t i = 0; static_cast<int>(learners.size()) < count; ++i) {
    Draws draws(seed, i);
    const Habits habits = habits_of(course, draws);
    const uint32_t goes_on = draws.below(longest + 1);
    if (goes_on < certified) continue;
    Place at;
    if (draws.below(100) < kLate)
      at.unit = at.frontier = static_cast<int32_t>(draws.below(units - goes_on - 5));
    const int32_t last = at.unit + static_cast<int32_t>(goes_on);
    Learner learner;
    learner.actions.push_back(at.resource());
    // Ends with a page, whose action the law has given before: the end tells nothing about it.
    while (at.unit < last || at.review > 0 || at.action != kPage) {
      const std::vector<Choice> choices = law(at, habits);
      at = drawn(choices, draws);
      learner.actions.push_back(at.resource());
      expect(choices, learner.expected);
    }
    learners.push_back(std::move(learner));
  }
  return learners;
}

}  // namespace tigon::convergence::next_action
