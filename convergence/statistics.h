// SPDX-License-Identifier: Apache-2.0
// Statistics that several judgements share.
#pragma once
#include <algorithm>
#include <functional>
#include <vector>

namespace tigon::convergence {

// The middle one in order, of an even number the upper one; there is at least one.
template <class T, class Less = std::less<>>
T median(std::vector<T> all, const Less& less = {}) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end(), less);
  return *middle;
}

// The value that Student's t with `freedom` degrees exceeds with probability 1 - p, p from 0.5.
double student_t(double p, int freedom);

}  // namespace tigon::convergence
