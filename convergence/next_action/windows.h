// SPDX-License-Identifier: Apache-2.0
// Windows of learners' sequences as the trainer's batches.
#pragma once
#include <cstdint>
#include <vector>

#include "convergence/next_action/sequences.h"
#include "convergence/text_data.h"

namespace tigon::convergence::next_action {

// Actions [begin, begin + inputs) of a learner and, as targets, those that follow from `counted`
// on.
struct Window {
  size_t learner = 0;
  int64_t begin = 0, inputs = 0;
  int64_t counted = 0;  // the first input whose target counts
};

// Training: each epoch cuts every learner behind another place, and has an order of its own.
std::vector<Window> training_windows(const std::vector<Sequence>& learners, int sequence,
                                     uint64_t seed, uint64_t epoch);

// Scoring: every action but the first is a target once, half a window behind the begin of its own.
std::vector<Window> scoring_windows(const std::vector<Sequence>& learners, int sequence);

// Windows [first, first + batch) of the list; what is missing is padding, as is the rest of short
// windows: targets are ignore_index there.
Batch batch_of(const std::vector<Sequence>& learners, const std::vector<Window>& windows,
               size_t first, int batch, int sequence);

}  // namespace tigon::convergence::next_action
