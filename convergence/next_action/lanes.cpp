// SPDX-License-Identifier: Apache-2.0
// Dealing learners to lanes.
#include "convergence/next_action/lanes.h"

#include <algorithm>

namespace tigon::convergence::next_action {

Lanes::Lanes(const std::vector<Sequence>& learners, const std::vector<size_t>& order, int lanes,
             int align)
    : lanes_(static_cast<size_t>(lanes)) {
  for (size_t learner : order) {
    const Sequence& s = learners[learner];
    auto& lane = *std::ranges::min_element(lanes_, {}, &std::vector<LaneStep>::size);
    while (lane.size() % static_cast<size_t>(align) != 0) lane.emplace_back();
    for (size_t t = 0; t + 1 < s.size(); ++t)
      lane.push_back({s[t], s[t + 1], static_cast<int32_t>(learner), t == 0});
  }
  for (const auto& lane : lanes_) length_ = std::max(length_, static_cast<int64_t>(lane.size()));
}

const LaneStep& Lanes::at(int lane, int64_t step) const {
  static const LaneStep kNone;
  const auto& steps = lanes_[static_cast<size_t>(lane)];
  return step < static_cast<int64_t>(steps.size()) ? steps[static_cast<size_t>(step)] : kNone;
}

}  // namespace tigon::convergence::next_action
