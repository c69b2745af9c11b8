// SPDX-License-Identifier: Apache-2.0
// One row of a divergence: its sums over both distributions, what a column adds to it, and its
// gradient. Probabilities come from their logarithms, so that d = log(p / q) is exactly 0 where
// both rows are equal.
#pragma once
#include "kernels/device/exp_sum.h"
#include "kernels/device/pieces.h"
#include "kernels/device/row_slice.h"
#include "kernels/divergence/divergence.h"

namespace tigon::divergence {

// 16-byte loads in flight per thread, of each of the two rows.
inline constexpr int kBatch = 2;

// Calls f(x, y, column) for the thread's part of a block's slice of two rows, whose first elements
// lie equally far from a 16-byte boundary where kWidth is not 1.
template <int kWidth, int kThreads, class T, class F>
TIGON_DEVICE void for_each_piece(const T* x, const T* y, const Slice& s, int columns, unsigned rank,
                                 F f) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int left = s.last - s.first - thread; left > 0; left -= kBatch * kThreads) {
    const int first = s.head + (s.last - left) * kWidth;
    Piece<T, kWidth> xs[kBatch], ys[kBatch];
    leave_unset(xs);
    leave_unset(ys);
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      if (b * kThreads >= left) break;
      xs[b] = load_piece<kWidth>(x + first + b * kThreads * kWidth);
      ys[b] = load_piece<kWidth>(y + first + b * kThreads * kWidth);
    }
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      if (b * kThreads >= left) break;
      float of_x[kWidth], of_y[kWidth];
      unpack_piece(xs[b], of_x);
      unpack_piece(ys[b], of_y);
      f(of_x, of_y, first + b * kThreads * kWidth);
    }
  }
  for_each_end<kThreads>(s, columns, rank, thread, [&](int column) {
    float of_x[1] = {to_float(load(x + column))}, of_y[1] = {to_float(load(y + column))};
    f(of_x, of_y, column);
  });
}

// ---- sums over a row ----------------------------------------------------------------------------

struct ExpSums {
  ExpSum student, teacher;  // of logits / temperature
};
template <int kCount>
TIGON_DEVICE void add(ExpSums& s, float (&x)[kCount], float (&y)[kCount], float inverse) {
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) x[j] *= inverse;
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) y[j] *= inverse;
  add(s.student, x);
  add(s.teacher, y);
}
struct JoinBoth {
  TIGON_DEVICE ExpSums operator()(const ExpSums& a, const ExpSums& b) const {
    return {JoinExpSums{}(a.student, b.student), JoinExpSums{}(a.teacher, b.teacher)};
  }
  TIGON_DEVICE ExpSums warp(const ExpSums& v) const {
    return {JoinExpSums{}.warp(v.student), JoinExpSums{}.warp(v.teacher)};
  }
};
TIGON_DEVICE float log_of(const ExpSum& s) { return s.max + logf(s.sum); }

// What columns add to the loss and to the slope.
struct Terms {
  float loss = 0.0f, slope = 0.0f;
};
struct AddTerms {
  TIGON_DEVICE Terms operator()(const Terms& a, const Terms& b) const {
    return {a.loss + b.loss, a.slope + b.slope};
  }
  TIGON_DEVICE Terms warp(const Terms& v) const { return {warp_sum(v.loss), warp_sum(v.slope)}; }
};

// ---- a column -----------------------------------------------------------------------------------

// Above 0 where the log-sum-exp was rounded down.
TIGON_DEVICE float log_p_of(float x, float inverse, float lse) {
  const float rounded = fmaf(x, inverse, -lse);
  return rounded > 0.0f ? 0.0f : rounded;
}

// Beyond it one of p and q is all of the mixture, and the other less than a rounding of it.
inline constexpr float kFar = 80.0f;
TIGON_DEVICE float nearer(float d) { return fminf(fmaxf(d, -kFar), kFar); }

// log(q / m) of d = log(p / q).
TIGON_DEVICE float log_q_in_mixture(float d, float beta) {
  return -fast_log(fmaf(beta, fast_exp_flushed(d), 1.0f - beta));
}

// p log(a / b), 0 where there is no p.
TIGON_DEVICE float part(float p, float log_ratio) { return p == 0.0f ? 0.0f : p * log_ratio; }

// A row of both distributions.
struct Pair {
  Kind kind;
  float beta, inverse, lse, teacher_lse;
  TIGON_DEVICE void add(Terms& t, float x, float y) const {
    const float log_q = log_p_of(x, inverse, lse), log_p = log_p_of(y, inverse, teacher_lse);
    const float q = fast_exp_flushed(log_q), p = fast_exp_flushed(log_p), d = log_p - log_q;
    if (kind == Kind::kForwardKl) {
      t.loss += part(p, d);
    } else if (kind == Kind::kReverseKl) {
      t.loss += part(q, -d);
    } else {
      const float near = nearer(d), in_mixture = log_q_in_mixture(near, beta);
      const float of_student = (1.0f - beta) * (q * in_mixture);
      t.loss += fmaf(beta * p, near + in_mixture, of_student);
      t.slope += of_student;
    }
  }
  // The gradient of the loss by x.
  TIGON_DEVICE float gradient(float x, float y, float scale, float slope) const {
    const float log_q = log_p_of(x, inverse, lse), log_p = log_p_of(y, inverse, teacher_lse);
    const float q = fast_exp_flushed(log_q);
    if (kind == Kind::kForwardKl) return scale * (q - fast_exp_flushed(log_p));
    const float d = log_p - log_q;
    if (kind == Kind::kReverseKl) return scale * part(q, -d - slope);
    return scale * (q * fmaf(1.0f - beta, log_q_in_mixture(nearer(d), beta), -slope));
  }
};

// ---- a piece ------------------------------------------------------------------------------------

template <int kCount>
TIGON_DEVICE void add(Terms& t, const Pair& pair, const float (&x)[kCount],
                      const float (&y)[kCount]) {
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) pair.add(t, x[j], y[j]);
}
// Overwrites x.
template <int kCount, class T>
TIGON_DEVICE void write_gradient(T* dx, const Pair& pair, float (&x)[kCount],
                                 const float (&y)[kCount], float scale, float slope) {
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) x[j] = pair.gradient(x[j], y[j], scale, slope);
  store_piece(dx, x);
}

}  // namespace tigon::divergence
