// The online sum of exponentials of a row, as softmax and the losses need it.
#pragma once
#include "kernels/device/device.h"

namespace tigon {

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
  if (planted("exp_sum.max_not_subtracted")) max = 0.0f;
  float sum = 0.0f;
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) {
    if (planted("exp_sum.nan_swallowed") && x[j] != x[j]) continue;
    sum += fast_exp_flushed(x[j] - max);
  }
  const float rescale = fast_exp_flushed(s.max - max);
  s.sum = s.sum * (planted("exp_sum.not_rescaled") ? 1.0f : rescale) + sum;
  s.max = max;
}

struct JoinExpSums {
  TIGON_DEVICE ExpSum operator()(const ExpSum& a, const ExpSum& b) const {
    const float max = fmaxf(a.max, b.max);
    if (planted("exp_sum.join_without_rescale")) return {max, a.sum + b.sum};
    return {max, a.sum * fast_exp_flushed(a.max - max) + b.sum * fast_exp_flushed(b.max - max)};
  }
};

}  // namespace tigon
