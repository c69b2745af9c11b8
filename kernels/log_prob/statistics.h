// SPDX-License-Identifier: Apache-2.0
// A row's sums as the statistics that ranks tell each other.
#pragma once
#include "kernels/log_prob/row_sums.h"
#include "kernels/log_prob/shard.h"

namespace tigon::log_prob {

// x_y: the target's logit.
TIGON_DEVICE void store_statistics(const Statistics<float>& to, int64_t row, const RowSums& s,
                                   float x_y) {
  float* const few = to.few + row * kStatistics;
  store(few + kMax, s.max);
  store(few + kSum, s.sum);
  store(few + kTarget, x_y);
  if (to.moment != nullptr) store(to.moment + row, s.moment);
}

template <bool kEntropy>
TIGON_DEVICE RowSums load_sums(const Statistics<const float>& from, int64_t row) {
  const float* const few = from.few + row * kStatistics;
  return {load(few + kMax), load(few + kSum), kEntropy ? load(from.moment + row) : 0.0f};
}

TIGON_DEVICE float load_target(const Statistics<const float>& from, int64_t row) {
  return load(from.few + row * kStatistics + kTarget);
}

}  // namespace tigon::log_prob
