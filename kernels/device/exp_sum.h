// SPDX-License-Identifier: Apache-2.0
// The online sum of exponentials of a row, as softmax and the losses need it.
#pragma once
#include <cmath>

#include "kernels/device/device.h"

namespace tigon {

// exp(x - max) = fix * part(x). Apply fix once to the sum of the parts: that saves one addition per
// element. fix corrects for the rounding of max * log2(e), up to 2^-24 of the product. Where the
// correction could exceed 2^128, adjacent floats are so far apart that any slope will do: the power
// is 1 or 0.
struct ShiftedExp {
  float slope, shift, fix;
  TIGON_DEVICE explicit ShiftedExp(float max)
      : slope(fabsf(max) < 1.4e9f ? 1.44269504f : 1.0f),
        shift(-(max * slope)),
        fix(fast_exp2_flushed(-fmaf(max, slope, shift))) {}
  TIGON_DEVICE float part(float x) const { return fast_exp2_flushed(fmaf(x, slope, shift)); }
};

// Largest x and sum of exp(x - max) over some columns. max starts at the smallest finite value and
// not at -inf, so that max - max is never inf - inf.
struct ExpSum {
  float max = -3.402823466e+38f;
  float sum = 0.0f;
};

template <int kCount>
TIGON_DEVICE void add(ExpSum& s, const float (&x)[kCount]) {
  float max = s.max;
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) max = fmaxf(max, x[j]);
  constexpr bool kShifted = kCount >= 16;  // of fewer, fix would cost more than it saves
  const ShiftedExp shifted(max);
  float sum = 0.0f;
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) {
    sum += kShifted ? shifted.part(x[j]) : fast_exp_flushed(x[j] - max);
  }
  if (kShifted) sum *= shifted.fix;
  const float rescale = fast_exp_flushed(s.max - max);
  s.sum = s.sum * rescale + sum;
  s.max = max;
}

struct LargerNumber {
  TIGON_DEVICE float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct JoinExpSums {
  TIGON_DEVICE ExpSum operator()(const ExpSum& a, const ExpSum& b) const {
    const float max = fmaxf(a.max, b.max);
    return {max, a.sum * fast_exp_flushed(a.max - max) + b.sum * fast_exp_flushed(b.max - max)};
  }
  // Of all lanes of a warp, each of which is rescaled once.
  TIGON_DEVICE ExpSum warp(const ExpSum& v) const {
    const float max = warp_reduce(v.max, LargerNumber{});
    return {max, warp_sum(v.sum * fast_exp_flushed(v.max - max))};
  }
};

}  // namespace tigon
