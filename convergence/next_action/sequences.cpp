// Made-up sequences, their split and their shuffle.
#include "convergence/next_action/sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "convergence/text_data.h"

namespace tigon::convergence::next_action {
namespace {

constexpr size_t kHeldOutEvery = 5;

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

std::vector<Hits> hits_of_law(const Learner& learner) {
  std::vector<Hits> hits(1);
  for (size_t t = 1; t < learner.actions.size(); ++t)
    hits[0].add(rank_in(learner.best[t - 1], learner.actions[t]));
  return hits;
}

}  // namespace

int64_t actions_in(const std::vector<Sequence>& learners) {
  int64_t sum = 0;
  for (const Sequence& s : learners) sum += static_cast<int64_t>(s.size());
  return sum;
}

Sequences made_up(const Course& course, int learners, uint64_t seed) {
  Sequences s;
  s.source = fmt::format("made-up course of {} resources, seed {}", course.resources(), seed);
  s.vocabulary = course.resources();
  s.syllabus = syllabus_of(course);
  std::vector<Learner> all = certified_learners(course, learners, seed);
  for (size_t i = 0; i < all.size(); ++i) {
    const bool held_out = (i + 1) % kHeldOutEvery == 0;
    if (held_out) s.bound.push_back(hits_of_law(all[i])[0]);
    (held_out ? s.held_out : s.train).push_back(std::move(all[i].actions));
  }
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
  for (auto* part : {&s.train, &s.held_out})
    for (const Sequence& learner : *part) all.insert(all.end(), learner.begin(), learner.end());
  const std::vector<size_t> order = random_order(all.size(), seed, kStream);
  size_t next = 0;
  for (auto* part : {&s.train, &s.held_out})
    for (Sequence& learner : *part)
      for (int32_t& action : learner) action = all[order[next++]];
  s.source += ", shuffled";
  s.bound.clear();
  return s;
}

}  // namespace tigon::convergence::next_action
