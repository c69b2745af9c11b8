// SPDX-License-Identifier: Apache-2.0
// Ratio estimates over clusters (Cochran, Sampling Techniques, 3rd ed., 6.3 and 9A.1).
#include "convergence/next_action/accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "convergence/statistics.h"

namespace tigon::convergence::next_action {
namespace {

// sum(hits) / sum(sizes), with an interval over the clusters.
Estimate ratio(const std::vector<double>& hits, const std::vector<double>& sizes) {
  double hit = 0, size = 0, square = 0;
  for (size_t i = 0; i < hits.size(); ++i) {
    hit += hits[i];
    size += sizes[i];
  }
  const double value = hit / size;
  for (size_t i = 0; i < hits.size(); ++i)
    square += (hits[i] - value * sizes[i]) * (hits[i] - value * sizes[i]);
  const auto clusters = static_cast<double>(hits.size());
  const double half = clusters < 2 ? std::numeric_limits<double>::infinity()
                                   : student_t(0.975, static_cast<int>(hits.size()) - 1) *
                                         std::sqrt(clusters / (clusters - 1) * square) / size;
  return {value, value - half, value + half};
}

}  // namespace

int rank_in(const std::vector<int32_t>& likeliest, int32_t target) {
  const auto found = std::find(likeliest.begin(), likeliest.end(), target);
  return found == likeliest.end() ? kTop : static_cast<int>(found - likeliest.begin());
}

Estimate accuracy(const std::vector<Hits>& learners, int64_t Hits::*which) {
  return gap(learners, std::vector<Hits>(learners.size()), which);
}

Estimate gap(const std::vector<Hits>& a, const std::vector<Hits>& b, int64_t Hits::*which) {
  std::vector<double> hits, sizes;
  for (size_t i = 0; i < a.size(); ++i) {
    hits.push_back(static_cast<double>(a[i].*which - b[i].*which));
    sizes.push_back(static_cast<double>(a[i].predicted));
  }
  return ratio(hits, sizes);
}

}  // namespace tigon::convergence::next_action
