// SPDX-License-Identifier: Apache-2.0
// Successive halving.
#include "harness/measure/halving.h"

#include <algorithm>
#include <numeric>

namespace tigon {

namespace {

// The faster half, and the incumbent, whom the last round needs.
std::vector<size_t> better_half(const std::vector<size_t>& candidates,
                                const std::vector<double>& medians, size_t incumbent) {
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return medians[a] < medians[b]; });
  std::vector<size_t> kept = {incumbent};
  const size_t half = std::max<size_t>(1, (candidates.size() - 1) / 2);
  for (size_t i : order)
    if (candidates[i] != incumbent && kept.size() <= half) kept.push_back(candidates[i]);
  return kept;
}

}  // namespace

Halving halve(size_t count, size_t incumbent, const MeasureInTurns& measure,
              const HalvingRule& rule) {
  Halving result;
  result.winner = incumbent;
  std::vector<size_t> candidates(count);
  std::iota(candidates.begin(), candidates.end(), size_t{0});
  const auto round = [&](size_t samples) {
    result.rounds.push_back(candidates);
    return measure(candidates, samples);
  };
  for (size_t samples = rule.first_samples; candidates.size() > 2; samples *= 2)
    candidates = better_half(candidates, round(samples), incumbent);
  const std::vector<double> medians = round(rule.final_samples);
  for (size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i] == incumbent) result.before = result.after = medians[i];
  for (size_t i = 0; i < candidates.size(); ++i)
    if (medians[i] < result.before * (1 - rule.margin)) {
      result.winner = candidates[i];
      result.after = medians[i];
    }
  return result;
}

}  // namespace tigon
