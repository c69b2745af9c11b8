// SPDX-License-Identifier: Apache-2.0
// Learners' sequences of resources: those that are trained on, those to choose settings by, and
// those held out.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "convergence/next_action/accuracy.h"
#include "convergence/next_action/course.h"

namespace tigon::convergence::next_action {

using Sequence = std::vector<int32_t>;

struct Sequences {
  std::string source;
  int32_t vocabulary = 0;  // resources are smaller
  std::vector<Sequence> train, validation, held_out;
  // For each resource the one that the syllabus puts next; empty when there is no syllabus.
  std::vector<int32_t> syllabus;
  // What the true law's likeliest resources are expected to hit, for each held-out learner, in
  // parts of kOne; empty when nobody knows.
  std::vector<Hits> bound;
};

int64_t actions_in(const std::vector<Sequence>& learners);

enum class Part { kTrain, kValidation, kHeldOut };

// Of each learner: a fifth is held out and a tenth is for validation, as the seed says.
std::vector<Part> parts(size_t learners, uint64_t seed);

// Learners dealt to their parts.
Sequences split(std::vector<Sequence> learners, int32_t vocabulary, uint64_t seed);

// Made-up learners.
Sequences made_up(const Course& course, int learners, uint64_t seed);

// Numbers below `count` in an order that seed and stream say.
std::vector<size_t> random_order(size_t count, uint64_t seed, uint64_t stream);

// The actions of all learners shuffled: what any one of them tells about the next is gone.
Sequences shuffled(Sequences sequences, uint64_t seed);

}  // namespace tigon::convergence::next_action
