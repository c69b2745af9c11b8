// SPDX-License-Identifier: Apache-2.0
// Successive halving: every candidate is measured a little, the better half again and longer, until
// one is left beside the incumbent. Candidates of a round are measured in turns, so that a change
// of the machine's clock hits all of them.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

namespace tigon {

struct HalvingRule {
  size_t first_samples = 5;  // of each candidate in the first round; twice as many in the next
  size_t final_samples = 41;
  double margin = 0.01;  // share by which the winner must be faster than the incumbent
};

struct Halving {
  size_t winner = 0;
  double before = 0, after = 0;             // seconds of incumbent and winner in the last round
  std::vector<std::vector<size_t>> rounds;  // who was measured
};

// Medians in seconds of these candidates, in their order, measured in turns; infinity for one that
// cannot run.
using MeasureInTurns =
    std::function<std::vector<double>(const std::vector<size_t>& candidates, size_t samples)>;

// Of candidates 0 to `count` - 1 the fastest, or the incumbent where none is faster by the margin.
Halving halve(size_t count, size_t incumbent, const MeasureInTurns& measure,
              const HalvingRule& rule = {});

}  // namespace tigon
