// SPDX-License-Identifier: Apache-2.0
// Order statistics of samples, and when enough samples are taken.
#pragma once
#include <cstddef>
#include <vector>

namespace tigon {

struct Summary {
  double median = 0, q1 = 0, q3 = 0, min = 0, max = 0;
  size_t n = 0;
};

// Quartiles by linear interpolation between order statistics (Hyndman and Fan 1996, type 7). All
// NaN when there is no sample.
Summary summarize(std::vector<double> samples);

// When to stop sampling: after `seconds` of measuring or `most` samples, or earlier, once there are
// `least` and the medians of the first and the second half agree within `agreement`.
struct StoppingRule {
  int warm_up = 3;  // samples that are thrown away first
  // Of fewer than 8 samples not even the smallest and the largest hold the median with 99%
  // confidence (2 / 2^8), so that no comparison of two of them says anything.
  size_t least = 8, most = 400;
  double seconds = 0.4;
  double agreement = 0.005;
  bool enough(const std::vector<double>& samples, double seconds_spent) const;
};

}  // namespace tigon
