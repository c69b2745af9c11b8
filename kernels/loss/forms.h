// SPDX-License-Identifier: Apache-2.0
// What rows.cu computes for each logit, in three forms: a kernel pays instructions and registers
// only for the options that it serves.
#pragma once
#include <climits>
#include <cmath>

#include "kernels/device/device.h"
#include "kernels/device/exp_sum.h"

namespace tigon {

enum class LossForm : int {
  kPlain,    // no softcap, no class weights, no results beside the loss
  kSoftcap,  // a softcap
  kGeneral,  // everything: maybe a softcap, class weights, results beside the loss
};

template <LossForm kForm>
struct Softcap {
  float cap, inverse;
  TIGON_DEVICE float operator()(float x) const {
    if (kForm == LossForm::kPlain || (kForm == LossForm::kGeneral && !(cap > 0.0f))) return x;
    return cap * fast_tanh(x * inverse);
  }
};

// Sums over some columns: of exponentials, and of the logits themselves.
template <LossForm kForm>
struct Statistics {
  ExpSum exp;
  float sum = 0.0f;
};
// The logits times their class weights; sum of exp(x - max) (x - max); and the first class with the
// largest logit. The softcap might make others equal to it: it is that before the softcap.
template <>
struct Statistics<LossForm::kGeneral> {
  ExpSum exp;
  float sum = 0.0f, moment = 0.0f;
  float largest = -INFINITY;
  int first = INT_MAX;  // none: every logit is NaN
};

// Whether a class with this logit comes before the first one.
TIGON_DEVICE bool comes_before(float x, int column, float largest, int first) {
  return x > largest || (x == largest && column < first);
}

// The moment of `s` about another maximum; 0 for an empty sum, whatever its maximum was.
TIGON_DEVICE float moment_about(float max, const Statistics<LossForm::kGeneral>& s) {
  if (s.exp.sum == 0.0f) return 0.0f;
  const float shift = s.exp.max - max;
  return fast_exp_flushed(s.exp.max - max) * (s.moment + shift * s.exp.sum);
}

template <LossForm kForm>
struct JoinStatistics {
  TIGON_DEVICE Statistics<kForm> operator()(const Statistics<kForm>& a,
                                            const Statistics<kForm>& b) const {
    Statistics<kForm> both;
    both.exp = JoinExpSums{}(a.exp, b.exp);
    both.sum = a.sum + b.sum;
    if constexpr (kForm == LossForm::kGeneral) {
      both.moment = moment_about(both.exp.max, a) + moment_about(both.exp.max, b);
      const bool other = comes_before(b.largest, b.first, a.largest, a.first);
      both.largest = other ? b.largest : a.largest;
      both.first = other ? b.first : a.first;
    }
    return both;
  }
};

// Adds the logits of kCount columns from `column` on.
template <LossForm kForm>
struct AddLogits {
  Softcap<kForm> softcap;
  const float* weight;  // of the classes, with smoothing; nullptr: 1 each
  int first_column;     // class of column 0

  template <int kCount>
  TIGON_DEVICE void operator()(Statistics<kForm>& s, float (&x)[kCount], int column) const {
    if constexpr (kForm == LossForm::kGeneral) {
      TIGON_UNROLL
      for (int j = 0; j < kCount; ++j) {
        const int c = first_column + column + j;
        if (!comes_before(x[j], c, s.largest, s.first)) continue;
        s.largest = x[j];
        s.first = c;
      }
    }
    TIGON_UNROLL
    for (int j = 0; j < kCount; ++j) x[j] = softcap(x[j]);
    if constexpr (kForm == LossForm::kGeneral) {
      const Statistics<kForm> before = s;
      add(s.exp, x);
      s.moment = moment_about(s.exp.max, before);
      TIGON_UNROLL
      for (int j = 0; j < kCount; ++j) {
        const float below = x[j] - s.exp.max, e = fast_exp_flushed(below);
        if (e > 0.0f) s.moment += e * below;  // 0 for a logit of -inf
        s.sum += weight != nullptr ? load(weight + column + j) * x[j] : x[j];
      }
    } else {
      add(s.exp, x);
      TIGON_UNROLL
      for (int j = 0; j < kCount; ++j) s.sum += x[j];
    }
  }
};

// Gradient of a column with logit x; `at_target` is taken off before the softcap's derivative.
template <LossForm kForm>
struct LossGradient {
  Softcap<kForm> softcap;
  float lse, scale, offset;
  const float* weight;  // of the classes, that multiply the offset; nullptr: 1 each

  TIGON_DEVICE float operator()(float x, float at_target, int column) const {
    float off = offset;
    if (kForm == LossForm::kGeneral && weight != nullptr) off *= load(weight + column);
    if (kForm == LossForm::kPlain || (kForm == LossForm::kGeneral && !(softcap.cap > 0.0f)))
      return scale * fast_exp_flushed(x - lse) - off - at_target;
    const float t = fast_tanh(x * softcap.inverse);
    const float slope = 1.0f - t * t;
    return (scale * fast_exp_flushed(softcap.cap * t - lse) - off - at_target) * slope;
  }
};

}  // namespace tigon
