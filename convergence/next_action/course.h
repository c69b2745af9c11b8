// SPDX-License-Identifier: Apache-2.0
// Made-up learners of a made-up course whose true law of the next action is known. All of it is
// integer arithmetic on counter-based random bits, so that a seed gives the same actions
// everywhere.
#pragma once
#include <cstdint>
#include <vector>

#include "convergence/next_action/accuracy.h"

namespace tigon::convergence::next_action {

// Actions on the resources of a unit, in the order of the syllabus.
enum Action : int32_t {
  kPage,
  kLoadFirst,  // of two videos
  kPlayFirst,
  kPauseFirst,
  kLoadSecond,
  kPlaySecond,
  kProblem,
  kCheck,
  kSecondProblem,
  kForum,
  kActions
};

inline constexpr uint32_t kOne = 65536;  // probabilities are parts of it

// What a learner tends to do.
struct Habits {
  uint32_t video;          // watches the first video of a unit
  uint32_t problem_first;  // looks at the problem before the videos
  uint32_t pause;          // and plays on
  uint32_t second_video;
  uint32_t retry;   // checks the same problem again
  uint32_t forum;   // goes there after a check
  uint32_t browse;  // stays there
  uint32_t second_problem;
  uint32_t back;  // reviews one or two of the last units
  uint32_t skip;  // leaves out units
};

struct Course {
  int units = 368;       // of kActions resources each
  bool personas = true;  // five kinds of learners, no two alike; else all like the first

  int32_t resources() const { return units * kActions; }
};

// Where a learner is: all that the law of the next action depends on, besides the habits.
struct Place {
  int32_t unit = 0;
  Action action = kPage;
  int32_t frontier = 0;  // the furthest unit
  int32_t review = 0;    // units left to review, this one included; 0: goes forward
  bool seen_video = false, seen_problem = false;  // in this visit of the unit

  int32_t resource() const { return unit * kActions + action; }
};

// One of the places that may come next; the weights of all of them sum to kOne, but for rounding.
struct Choice {
  Place place;
  uint32_t weight;
};

// The true law. Different choices are different resources.
std::vector<Choice> law(const Place& at, const Habits& habits);

struct Learner {
  std::vector<int32_t> actions;  // resource by resource
  // What the resources that the law ranks highest are expected to hit, in parts of kOne: no
  // predictor can expect more.
  Hits expected;
};

// The first `count` certified learners (those who come far enough) of a seed. Learner i does not
// depend on how many there are.
std::vector<Learner> certified_learners(const Course& course, int count, uint64_t seed);

}  // namespace tigon::convergence::next_action
