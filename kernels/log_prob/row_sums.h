// SPDX-License-Identifier: Apache-2.0
// What the log-probabilities and the entropy of a row need of its logits, found in one sweep.
#pragma once
#include "kernels/device/device.h"
#include "kernels/device/exp_sum.h"
#include "kernels/device/row_slice.h"

namespace tigon::log_prob {

// 16-byte loads in flight per thread.
inline constexpr int kBatch = 3;

// Of some columns x, with d = (x - max) slope and slope = log2(e) / temperature: the sums of 2^d
// and, with kEntropy, of 2^d d. max starts at the smallest finite value, so that max - max is never
// inf - inf.
struct RowSums {
  float max = -3.402823466e+38f;
  float sum = 0.0f, moment = 0.0f;
};

// The same sums about another maximum. What vanishes adds nothing, however far away it was.
template <bool kEntropy>
TIGON_DEVICE RowSums about(float max, const RowSums& s, float slope) {
  const float shift = (s.max - max) * slope, scale = fast_exp2_flushed(shift);
  RowSums moved = {max, scale * s.sum, 0.0f};
  if (kEntropy && scale > 0.0f) moved.moment = scale * (s.moment + shift * s.sum);
  return moved;
}

template <bool kEntropy, int kCount>
TIGON_DEVICE void add(RowSums& s, const float (&x)[kCount], float slope) {
  float max = s.max, sum = 0.0f, moment = 0.0f;
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) max = fmaxf(max, x[j]);
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) {
    const float d = (x[j] - max) * slope, e = fast_exp2_flushed(d);
    sum += e;
    if (kEntropy && e > 0.0f) moment += e * d;  // 0 for a logit of -inf
  }
  s = about<kEntropy>(max, s, slope);
  s.sum += sum;
  s.moment += moment;
}

// As block_join() needs it.
template <bool kEntropy>
struct JoinRowSums {
  float slope;
  TIGON_DEVICE RowSums operator()(const RowSums& a, const RowSums& b) const {
    const float max = fmaxf(a.max, b.max);
    const RowSums x = about<kEntropy>(max, a, slope), y = about<kEntropy>(max, b, slope);
    return {max, x.sum + y.sum, x.moment + y.moment};
  }
  TIGON_DEVICE RowSums warp(const RowSums& v) const {
    const RowSums moved = about<kEntropy>(warp_reduce(v.max, LargerNumber{}), v, slope);
    return {moved.max, warp_sum(moved.sum), kEntropy ? warp_sum(moved.moment) : 0.0f};
  }
};

// The thread's columns of a block's slice of the row x.
template <bool kEntropy, int kThreads, class T>
TIGON_DEVICE RowSums sweep(const T* x, const Slice& s, int columns, unsigned rank, float slope) {
  constexpr int kWidth = kVec<T>;
  const int thread = static_cast<int>(threadIdx.x);
  RowSums sums;
  for (int remaining = s.last - s.first - thread; remaining > 0; remaining -= kBatch * kThreads) {
    const T* const from = x + s.head + (s.last - remaining) * kWidth;
    Vec<T> batch[kBatch];
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b)
      if (b * kThreads < remaining) batch[b] = load16(from + b * kThreads * kWidth);
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      if (b * kThreads >= remaining) break;
      float f[kWidth];
      unpack(batch[b], f);
      add<kEntropy>(sums, f, slope);
    }
  }
  for_each_end<kThreads>(s, columns, rank, thread, [&](int column) {
    const float f[1] = {to_float(load(x + column))};
    add<kEntropy>(sums, f, slope);
  });
  return sums;
}

}  // namespace tigon::log_prob
