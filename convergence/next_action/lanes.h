// SPDX-License-Identifier: Apache-2.0
// Learners dealt to lanes that a recurrent network walks side by side, one learner after the other.
#pragma once
#include <cstdint>
#include <vector>

#include "convergence/next_action/sequences.h"

namespace tigon::convergence::next_action {

// One step of one lane.
struct LaneStep {
  int32_t input = 0, target = -1;  // target -1: the lane has come to its end
  int32_t learner = -1;
  bool fresh = true;  // the first step of a learner, who begins without a past
};

class Lanes {
 public:
  // Learners in the given order go to the lane that is shortest so far, where they begin at a
  // multiple of `align` steps.
  Lanes(const std::vector<Sequence>& learners, const std::vector<size_t>& order, int lanes,
        int align = 1);

  // Steps from `begin` up to the longest lane's end are there; shorter lanes are filled up.
  int64_t length() const { return length_; }
  const LaneStep& at(int lane, int64_t step) const;

 private:
  std::vector<std::vector<LaneStep>> lanes_;
  int64_t length_ = 0;
};

}  // namespace tigon::convergence::next_action
