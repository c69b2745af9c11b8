// SPDX-License-Identifier: Apache-2.0
// One row of log-probabilities: its results from its sums, and its gradient.
#pragma once
#include <cmath>

#include "kernels/device/pieces.h"
#include "kernels/log_prob/log_prob.h"
#include "kernels/log_prob/row_sums.h"
#include "kernels/loss/shard.h"

namespace tigon::log_prob {

inline constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;

inline bool is_temperature(float t) {
  return t > 0.0f && std::isfinite(t) && std::isfinite(kLog2E / t);
}

// The target's column; -1 where it is no class.
TIGON_DEVICE int column_of(int64_t target, int columns) {
  return target >= 0 && target < columns ? static_cast<int>(target) : -1;
}

// The target among all classes, and its column among those of the shard; -1 where it is none.
TIGON_DEVICE int class_of(int64_t target, const Shard& shard) {
  return column_of(target, static_cast<int>(shard.classes));
}
TIGON_DEVICE int held_target(int64_t target, const Shard& shard, int columns) {
  const int y = class_of(target, shard) - static_cast<int>(shard.first_class);
  return y >= 0 && y < columns ? y : -1;
}

template <class P>
TIGON_DEVICE void write_row(const Forward<P>& a, int64_t row, float logp, float lse,
                            float entropy) {
  store(a.logp.data + row, logp);
  store(a.lse.data + row, lse);
  if (a.entropy.data != nullptr) store(a.entropy.data + row, entropy);
}

// Of the sums of a whole row; x_y is the target's logit.
template <class P>
TIGON_DEVICE void write_sums(const Forward<P>& a, int64_t row, const RowSums& s, float x_y) {
  const float log_sum = logf(s.sum);
  write_row(a, row, (x_y - s.max) / a.temperature - log_sum, s.max / a.temperature + log_sum,
            log_sum - kLn2 * (s.moment / s.sum));
}

// The gradient of a row: that of a logit x, without what the target's has on top.
template <bool kEntropy>
struct RowGradient {
  float inverse;     // 1 / temperature
  float lse;         // NaN makes the row NaN
  float at_target;   // g / temperature
  float everywhere;  // -(g + h entropy) / temperature
  float per_logp;    // -h / temperature
  TIGON_DEVICE float operator()(float x) const {
    const float rounded = fmaf(x, inverse, -lse);  // above 0 where lse was rounded down
    const float logp = rounded > 0.0f ? 0.0f : rounded, p = fast_exp_flushed(logp);
    if (!kEntropy) return p * everywhere;
    return p == 0.0f ? 0.0f : p * fmaf(per_logp, logp, everywhere);
  }
};

template <bool kEntropy, class P>
TIGON_DEVICE RowGradient<kEntropy> row_gradient(const Backward<P>& a, int64_t row, int y,
                                                float inverse) {
  const float g = load(a.dlogp.data + row) * inverse;
  RowGradient<kEntropy> r = {inverse, y >= 0 ? load(a.lse.data + row) : NAN, g, -g, 0.0f};
  if constexpr (kEntropy) {
    r.per_logp = -load(a.dentropy.data + row) * inverse;
    r.everywhere = fmaf(r.per_logp, load(a.entropy.data + row), -g);
  }
  return r;
}

// Stores the gradient of the logits `f` of the columns from `column` on. y: the target's column.
template <int kWidth, bool kEntropy, class T>
TIGON_DEVICE void write_piece(T* dx, int column, float (&f)[kWidth],
                              const RowGradient<kEntropy>& gradient, int y) {
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) f[j] = gradient(f[j]);
  if (y >= column && y < column + kWidth) {
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j)
      if (column + j == y) f[j] += gradient.at_target;
  }
  store_piece(dx + column, f);
}

// Zeros in a block's slice of the row dx.
template <int kWidth, int kThreads, class T>
TIGON_DEVICE void write_zeros(T* dx, const Slice& s, int columns, unsigned rank, int thread) {
  float zeros[kWidth] = {};
  for (int remaining = s.last - s.first - thread; remaining > 0; remaining -= kThreads)
    store_piece(dx + s.head + (s.last - remaining) * kWidth, zeros);
  for_each_end<kThreads>(s, columns, rank, thread,
                         [&](int column) { store(dx + column, from_float<T>(0.0f)); });
}

// The gradient of a block's slice of the row x, which dx may be. y: the target's column.
template <int kWidth, int kThreads, bool kEntropy, class T>
TIGON_DEVICE void write_gradient(const T* x, T* dx, const Slice& s, int columns, unsigned rank,
                                 int thread, const RowGradient<kEntropy>& gradient, int y) {
  for (int remaining = s.last - s.first - thread; remaining > 0; remaining -= kBatch * kThreads) {
    const int first = s.head + (s.last - remaining) * kWidth;
    Piece<T, kWidth> batch[kBatch];
    leave_unset(batch);
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b)
      if (b * kThreads < remaining)
        batch[b] = load_piece_stream<kWidth>(x + first + b * kThreads * kWidth);
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      if (b * kThreads >= remaining) break;
      float f[kWidth];
      unpack_piece(batch[b], f);
      write_piece(dx, first + b * kThreads * kWidth, f, gradient, y);
    }
  }
  for_each_end<kThreads>(s, columns, rank, thread, [&](int column) {
    float f[1] = {to_float(load(x + column))};
    write_piece(dx, column, f, gradient, y);
  });
}

}  // namespace tigon::log_prob
