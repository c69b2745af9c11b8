// SPDX-License-Identifier: Apache-2.0
// Sums over a row of each of two distributions, found in one sweep.
#pragma once
#include "kernels/device/device.h"
#include "kernels/device/exp_sum.h"

namespace tigon::divergence {

// Of some columns of two rows: the sums of 2^d, d = (x - max) slope and slope = log2(e) /
// temperature, and, with kMoment, of the first's 2^d times the difference of both d. About their
// maxima the differences are small, so their sum loses no digits however far apart the rows lie.
// A maximum starts at the smallest finite value, so that max - max is never inf - inf.
struct PairSums {
  float max = -3.402823466e+38f, sum = 0.0f;
  float other_max = -3.402823466e+38f, other_sum = 0.0f;
  float moment = 0.0f;
};

// The same sums about other maxima. What vanishes adds nothing, however far away it was.
template <bool kMoment>
TIGON_DEVICE PairSums about(float max, float other_max, const PairSums& s, float slope) {
  const float shift = (s.max - max) * slope, other_shift = (s.other_max - other_max) * slope;
  const float scale = fast_exp2_flushed(shift);
  PairSums moved = {max, scale * s.sum, other_max, fast_exp2_flushed(other_shift) * s.other_sum};
  if (kMoment && moved.sum > 0.0f)
    moved.moment = scale * (s.moment + (shift - other_shift) * s.sum);
  return moved;
}

template <bool kMoment, int kCount>
TIGON_DEVICE void add(PairSums& s, const float (&x)[kCount], const float (&y)[kCount],
                      float slope) {
  float max = s.max, other_max = s.other_max;
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) max = fmaxf(max, x[j]);
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) other_max = fmaxf(other_max, y[j]);
  s = about<kMoment>(max, other_max, s, slope);
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) {
    const float d = (x[j] - max) * slope, other_d = (y[j] - other_max) * slope;
    const float e = fast_exp2_flushed(d);
    s.sum += e;
    s.other_sum += fast_exp2_flushed(other_d);
    if (kMoment && e > 0.0f) s.moment += e * (d - other_d);  // 0 for a logit of -inf
  }
}

// As block_join() needs it.
template <bool kMoment>
struct JoinPairSums {
  float slope;
  TIGON_DEVICE PairSums operator()(const PairSums& a, const PairSums& b) const {
    const float max = fmaxf(a.max, b.max), other_max = fmaxf(a.other_max, b.other_max);
    const PairSums x = about<kMoment>(max, other_max, a, slope),
                   y = about<kMoment>(max, other_max, b, slope);
    return {max, x.sum + y.sum, other_max, x.other_sum + y.other_sum, x.moment + y.moment};
  }
  TIGON_DEVICE PairSums warp(const PairSums& v) const {
    const PairSums moved = about<kMoment>(warp_reduce(v.max, LargerNumber{}),
                                          warp_reduce(v.other_max, LargerNumber{}), v, slope);
    return {moved.max, warp_sum(moved.sum), moved.other_max, warp_sum(moved.other_sum),
            kMoment ? warp_sum(moved.moment) : 0.0f};
  }
};

}  // namespace tigon::divergence
