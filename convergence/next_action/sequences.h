// Learners' sequences of resources, split into those that are trained on and those held out.
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
  std::vector<Sequence> train, held_out;
  std::vector<int32_t> syllabus;  // for each resource the one that the syllabus puts next
  // What the true law's likeliest resources hit, for each held-out learner; empty when nobody
  // knows.
  std::vector<Hits> bound;
};

int64_t actions_in(const std::vector<Sequence>& learners);

// Made-up learners, a fifth of them held out.
Sequences made_up(const Course& course, int learners, uint64_t seed);

// Numbers below `count` in an order that seed and stream say.
std::vector<size_t> random_order(size_t count, uint64_t seed, uint64_t stream);

// The actions of all learners dealt out anew: what any one of them tells about the next is gone.
Sequences shuffled(Sequences sequences, uint64_t seed);

}  // namespace tigon::convergence::next_action
