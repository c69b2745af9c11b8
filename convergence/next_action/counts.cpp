// SPDX-License-Identifier: Apache-2.0
// Counting contexts by sorting, looking them up by bisection.
#include "convergence/next_action/counts.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "convergence/threads.h"

namespace tigon::convergence::next_action {
namespace {

// Of the last `length` actions; 64 bits, so that no two of some million contexts are mixed up.
uint64_t hash_of(std::span<const int32_t> past, size_t length) {
  uint64_t h = 0xcbf29ce484222325u + length;
  for (int32_t action : past.last(length)) {
    h = (h ^ static_cast<uint64_t>(action)) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  }
  return h;
}

bool holds(const std::vector<int32_t>& list, int32_t resource) {
  return std::find(list.begin(), list.end(), resource) != list.end();
}

}  // namespace

NGrams::NGrams(const std::vector<Sequence>& train, int longest) {
  for (size_t length = 0; length < static_cast<size_t>(longest); ++length) {
    Table all;
    for (const Sequence& s : train)
      for (size_t t = std::max<size_t>(length, 1); t < s.size(); ++t)
        all.push_back({hash_of(std::span(s).first(t), length), s[t], 1});
    std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.context, a.resource) < std::tie(b.context, b.resource);
    });
    Table table;
    for (const Entry& e : all) {
      if (table.empty() || table.back().context != e.context || table.back().resource != e.resource)
        table.push_back({e.context, e.resource, 0});
      ++table.back().count;
    }
    tables_.push_back(std::move(table));
  }
  Table unigram = tables_[0];
  std::stable_sort(unigram.begin(), unigram.end(),
                   [](const Entry& a, const Entry& b) { return a.count > b.count; });
  for (const Entry& e : unigram) common_.push_back(e.resource);
}

std::span<const NGrams::Entry> NGrams::followers(const Table& table, uint64_t context) {
  const auto range = std::ranges::equal_range(table, context, {}, &Entry::context);
  return {range.begin(), range.end()};
}

std::vector<int32_t> NGrams::likeliest(std::span<const int32_t> past, int order) const {
  constexpr size_t kMost = kTop;
  struct Candidate {
    int32_t resource;
    std::array<int32_t, 16> counts;  // of the longest context first
  };
  std::vector<Candidate> candidates;
  const size_t longest = std::min({past.size(), static_cast<size_t>(order - 1), size_t{15}});
  // Whoever followed a context followed its ends, too.
  for (size_t length = longest; length > 0; --length)
    for (const Entry& e : followers(tables_[length], hash_of(past, length))) {
      auto found = std::ranges::find(candidates, e.resource, &Candidate::resource);
      if (found == candidates.end()) found = candidates.insert(found, Candidate{e.resource, {}});
      found->counts[longest - length] = e.count;
    }
  std::ranges::stable_sort(candidates, std::greater<>{}, &Candidate::counts);
  std::vector<int32_t> best;
  for (size_t i = 0; i < std::min(kMost, candidates.size()); ++i)
    best.push_back(candidates[i].resource);
  for (size_t i = 0; i < common_.size() && best.size() < kMost; ++i)
    if (!holds(best, common_[i])) best.push_back(common_[i]);
  return best;
}

std::vector<Hits> NGrams::score(const std::vector<Sequence>& learners, int order) const {
  std::vector<Hits> hits(learners.size());
  parallel_for(static_cast<int>(learners.size()), [&](int learner) {
    const auto i = static_cast<size_t>(learner);
    const Sequence& s = learners[i];
    for (size_t t = 1; t < s.size(); ++t)
      hits[i].add(rank_in(likeliest(std::span(s).first(t), order), s[t]));
  });
  return hits;
}

int64_t NGrams::entries(int order) const {
  int64_t sum = 0;
  for (size_t length = 0; length < static_cast<size_t>(order); ++length)
    sum += static_cast<int64_t>(tables_[length].size());
  return sum;
}

std::vector<Hits> score_syllabus(const std::vector<int32_t>& syllabus,
                                 const std::vector<Sequence>& learners) {
  std::vector<Hits> scores(learners.size());
  for (size_t i = 0; i < learners.size(); ++i) {
    const Sequence& s = learners[i];
    for (size_t t = 1; t < s.size(); ++t) {
      std::vector<int32_t> guesses;
      int32_t at = s[t - 1];
      for (int guess = 0; guess < kTop; ++guess)
        guesses.push_back(at = syllabus[static_cast<size_t>(at)]);
      scores[i].add(rank_in(guesses, s[t]));
    }
  }
  return scores;
}

}  // namespace tigon::convergence::next_action
