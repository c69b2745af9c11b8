// SPDX-License-Identifier: Apache-2.0
// Made-up sequences, their split and their shuffle.
#include "convergence/next_action/sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "convergence/text_data.h"

namespace tigon::convergence::next_action {
namespace {

// The next resource, not the next action on the same one; the forum is not in the syllabus.
std::vector<int32_t> syllabus_of(const Course& course) {
  constexpr int32_t kNext[kActions] = {kLoadFirst, kLoadSecond,   kLoadSecond,    kLoadSecond,
                                       kProblem,   kProblem,      kSecondProblem, kSecondProblem,
                                       kActions,   kSecondProblem};
  std::vector<int32_t> next;
  for (int32_t r = 0; r < course.resources(); ++r)
    next.push_back((r - r % kActions + kNext[r % kActions]) % course.resources());
  return next;
}

}  // namespace

int64_t actions_in(const std::vector<Sequence>& learners) {
  int64_t sum = 0;
  for (const Sequence& s : learners) sum += static_cast<int64_t>(s.size());
  return sum;
}

std::vector<Part> parts(size_t learners, uint64_t seed) {
  constexpr uint64_t kStream = 5;
  std::vector<Part> parts(learners, Part::kTrain);
  const std::vector<size_t> order = random_order(learners, seed, kStream);
  for (size_t i = 0; i < learners; ++i) {
    if (i % 5 == 0) parts[order[i]] = Part::kHeldOut;
    if (i % 10 == 1) parts[order[i]] = Part::kValidation;
  }
  return parts;
}

Sequences split(std::vector<Sequence> learners, int32_t vocabulary, uint64_t seed) {
  Sequences s;
  s.vocabulary = vocabulary;
  const std::vector<Part> part = parts(learners.size(), seed);
  for (size_t i = 0; i < learners.size(); ++i)
    (part[i] == Part::kTrain        ? s.train
     : part[i] == Part::kValidation ? s.validation
                                    : s.held_out)
        .push_back(std::move(learners[i]));
  return s;
}

Sequences made_up(const Course& course, int learners, uint64_t seed) {
  std::vector<Sequence> actions;
  std::vector<Hits> bounds;
  for (Learner& learner : certified_learners(course, learners, seed)) {
    actions.push_back(std::move(learner.actions));
    bounds.push_back(learner.expected);
  }
  Sequences s = split(std::move(actions), course.resources(), seed);
  s.source = fmt::format("made-up course of {} resources, seed {}", course.resources(), seed);
  s.syllabus = syllabus_of(course);
  const std::vector<Part> part = parts(bounds.size(), seed);
  for (size_t i = 0; i < bounds.size(); ++i)
    if (part[i] == Part::kHeldOut) s.bound.push_back(bounds[i]);
  return s;
}

std::vector<size_t> random_order(size_t count, uint64_t seed, uint64_t stream) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return random_bits(seed, stream, a) < random_bits(seed, stream, b);
  });
  return order;
}

Sequences shuffled(Sequences s, uint64_t seed) {
  constexpr uint64_t kStream = 3;
  Sequence all;
  for (auto* part : {&s.train, &s.validation, &s.held_out})
    for (const Sequence& learner : *part) all.insert(all.end(), learner.begin(), learner.end());
  const std::vector<size_t> order = random_order(all.size(), seed, kStream);
  size_t next = 0;
  for (auto* part : {&s.train, &s.validation, &s.held_out})
    for (Sequence& learner : *part)
      for (int32_t& action : learner) action = all[order[next++]];
  s.source += ", shuffled";
  s.bound.clear();
  return s;
}

}  // namespace tigon::convergence::next_action
