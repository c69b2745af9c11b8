// SPDX-License-Identifier: Apache-2.0
// Predictors that count: unigram and n-gram with back-off, and the syllabus.
#pragma once
#include <span>
#include <vector>

#include "convergence/next_action/sequences.h"

namespace tigon::convergence::next_action {

// How often resources followed the contexts of 0 to longest - 1 actions that occur in training.
class NGrams {
 public:
  NGrams(const std::vector<Sequence>& train, int longest);

  // The likeliest resources after `past` of the n-gram with n = `order`: by how often they followed
  // the longest known context of at most order - 1 actions, then the next shorter one, and so on,
  // which also decides ties.
  std::vector<int32_t> likeliest(std::span<const int32_t> past, int order) const;

  // Hits of each learner by the n-gram with n = `order`.
  std::vector<Hits> score(const std::vector<Sequence>& learners, int order) const;

  // What the n-gram of that order has counted: pairs of a context and what followed.
  int64_t entries(int order) const;

 private:
  struct Entry {
    uint64_t context;
    int32_t resource, count;
  };
  using Table = std::vector<Entry>;  // sorted by context, then resource

  static std::span<const Entry> followers(const Table& table, uint64_t context);

  std::vector<Table> tables_;    // by length of the context
  std::vector<int32_t> common_;  // all resources that occur, the most frequent ones first
};

// Its first guess is the syllabus's next resource, the others are those after it.
std::vector<Hits> score_syllabus(const std::vector<int32_t>& syllabus,
                                 const std::vector<Sequence>& learners);

}  // namespace tigon::convergence::next_action
