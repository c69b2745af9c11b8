// SPDX-License-Identifier: Apache-2.0
// What a column of both rows adds to a Jensen-Shannon divergence, and the gradients by it.
// Probabilities come from their logarithms, so that the logarithm of p / q is exactly 0 where both
// rows are equal.
#pragma once
#include "kernels/device/pieces.h"
#include "kernels/divergence/divergence.h"
#include "kernels/log_prob/row.h"

namespace tigon::divergence {

using log_prob::kLn2;
using log_prob::kLog2E;

// The logarithms of a column's probabilities, of student and teacher.
struct Column {
  float log_q, log_p;
  TIGON_DEVICE float log_ratio() const { return log_p - log_q; }
};

// A row of both. In bits (slope log2(e) / temperature, log2 of the sums of exponentials), or
// natural (slope 1 / temperature, log-sum-exps).
struct Pair {
  float slope, log_sum, teacher_log_sum;
  TIGON_DEVICE Column operator()(float x, float y) const {
    return {fmaf(x, slope, -log_sum), fmaf(y, slope, -teacher_log_sum)};
  }
};

// A log-sum-exp that was rounded down must not make a probability more than 1.
TIGON_DEVICE float at_most_0(float log_p) { return log_p > 0.0f ? 0.0f : log_p; }
TIGON_DEVICE Column at_most_0(const Column& c) { return {at_most_0(c.log_q), at_most_0(c.log_p)}; }

// More bits than lie between the largest probability and the least that is not flushed to 0. The
// bound keeps infinities out of the sums: two masked logits have no ratio.
inline constexpr float kFar = 127.0f;

// A column of the mixture m = beta p + (1 - beta) q, of d = log2(p / q).
struct Mixture {
  bool teacher_larger;
  float ratio;                 // of the smaller of p and q to the larger
  float log_large, log_small;  // log2(larger / m), log2(smaller / m)

  TIGON_DEVICE Mixture(float d, float beta) {
    const float far = fminf(fabsf(d), kFar);
    teacher_larger = d > 0.0f;
    ratio = fast_exp2_flushed(-far);
    log_large = -rough_log2(fmaf(share_of_smaller(beta), ratio, share_of_larger(beta)));
    log_small = log_large - far;
  }
  TIGON_DEVICE float share_of_larger(float beta) const {
    return teacher_larger ? beta : 1.0f - beta;
  }
  TIGON_DEVICE float share_of_smaller(float beta) const {
    return teacher_larger ? 1.0f - beta : beta;
  }
  TIGON_DEVICE float log_q() const { return teacher_larger ? log_small : log_large; }
};

// Sums over columns, in bits: of p log2(p / m) and of q log2(q / m).
struct Terms {
  float teacher = 0.0f, student = 0.0f;
};
TIGON_DEVICE void add(Terms& t, const Column& c, float beta) {
  const Mixture m(c.log_ratio(), beta);
  // Of logits near 2^117 a logarithm's rounding is above 0, and its power infinite.
  const float larger = fast_exp2_flushed(at_most_0(fmaxf(c.log_p, c.log_q)));
  const float of_larger = larger * m.log_large, of_smaller = larger * m.ratio * m.log_small;
  t.teacher += m.teacher_larger ? of_larger : of_smaller;
  t.student += m.teacher_larger ? of_smaller : of_larger;
}
template <int kCount>
TIGON_DEVICE void add(Terms& t, const Pair& pair, const float (&x)[kCount],
                      const float (&y)[kCount], float beta) {
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) add(t, pair(x[j], y[j]), beta);
}
struct AddTerms {
  TIGON_DEVICE Terms operator()(const Terms& a, const Terms& b) const {
    return {a.teacher + b.teacher, a.student + b.student};
  }
  TIGON_DEVICE Terms warp(const Terms& v) const {
    return {warp_sum(v.teacher), warp_sum(v.student)};
  }
};

// The gradient of a loss by the student's logits. scale: upstream gradient / temperature.
template <Kind kKind>
struct Gradient {
  float scale, slope, beta;
  TIGON_DEVICE float operator()(const Column& c) const {
    const float q = fast_exp_flushed(c.log_q), d = c.log_ratio();
    if constexpr (kKind == Kind::kForwardKl) return scale * (q - fast_exp_flushed(c.log_p));
    if constexpr (kKind == Kind::kReverseKl) return q == 0.0f ? 0.0f : scale * (q * (-d - slope));
    return scale * (q * fmaf((1.0f - beta) * kLn2, Mixture(d * kLog2E, beta).log_q(), -slope));
  }
};

// Overwrites x.
template <Kind kKind, int kCount, class T>
TIGON_DEVICE void write_gradient(T* dx, const Pair& pair, float (&x)[kCount],
                                 const float (&y)[kCount], const Gradient<kKind>& gradient) {
  TIGON_UNROLL
  for (int j = 0; j < kCount; ++j) x[j] = gradient(at_most_0(pair(x[j], y[j])));
  store_piece(dx, x);
}

}  // namespace tigon::divergence
