// SPDX-License-Identifier: Apache-2.0
// Values of the losses of one token, whose derivatives are made by dual numbers: what
// kernels/linear_policy/token_losses.h is held against.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/linear_policy/linear_policy.h"

namespace tigon::reference::linear_policy {

using tigon::linear_policy::Objective;
using tigon::linear_policy::Options;

// A number and its derivative by one variable.
template <class S>
struct Dual {
  S value, slope;
  Dual(double v) : value(v), slope(0.0) {}  // NOLINT: a number is a constant
  Dual(const S& v, const S& s) : value(v), slope(s) {}

  friend Dual operator+(const Dual& a, const Dual& b) {
    return {S(a.value + b.value), S(a.slope + b.slope)};
  }
  friend Dual operator-(const Dual& a, const Dual& b) {
    return {S(a.value - b.value), S(a.slope - b.slope)};
  }
  friend Dual operator*(const Dual& a, const Dual& b) {
    return {S(a.value * b.value), S(a.slope * b.value + a.value * b.slope)};
  }
  friend Dual operator/(const Dual& a, const Dual& b) {
    const S quotient = S(a.value / b.value);
    return {quotient, S((a.slope - quotient * b.slope) / b.value)};
  }
  friend Dual exp(const Dual& a) {
    using std::exp;
    const S e = exp(a.value);
    return {e, S(e * a.slope)};
  }
  friend bool operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
  // The same number as a constant of this variable.
  friend Dual detached(const Dual& a) { return {a.value, S(0.0)}; }
};

template <class D>
D clip_loss(const Options& o, const D& ratio, const D& advantage) {
  const D low(1.0 - o.clip_low), high(1.0 + o.clip_high), most(double(o.delta));
  const D first = (o.delta > 0 && most < ratio ? most : ratio) * advantage;
  const D second = (ratio < low ? low : high < ratio ? high : ratio) * advantage;
  return D(0) - (second < first ? second : first);
}

template <class D>
D cispo_loss(const Options& o, const D& logp, const D& ratio, const D& advantage) {
  const D high(double(o.clip_high));
  return D(0) - detached(high < ratio ? high : ratio) * advantage * logp;
}

template <class D>
D sapo_loss(const Options& o, const D& ratio, const D& advantage) {
  const D t(double(D(0) < advantage ? o.sapo_positive : o.sapo_negative));
  return D(0) - advantage * (D(4) / t) / (D(1) + exp(t * (D(1) - ratio)));
}

template <class D>
D token_loss(const Options& o, const D& logp, const D& ratio, const D& advantage) {
  if (o.objective == Objective::kCispo) return cispo_loss(o, logp, ratio, advantage);
  if (o.objective == Objective::kSapo) return sapo_loss(o, ratio, advantage);
  return clip_loss(o, ratio, advantage);
}

// exp(d) - d - 1, d = ref_logp - logp.
template <class D>
D k3(const D& logp, const D& ref_logp) {
  const D d = ref_logp - logp;
  return exp(d) - d - D(1);
}

// The ratios at which the derivative of a clipped loss jumps: below `low`, or above `high`, it is
// 0. Clipped is what is beyond them.
struct Bounds {
  double low = 0, high = std::numeric_limits<double>::infinity();
};
inline Bounds bounds(const Options& o, double advantage) {
  Bounds b;
  if (o.objective == Objective::kCispo) b.high = o.clip_high;
  if (o.objective != Objective::kClip || advantage == 0) return b;
  const double most = o.delta > 0 ? double(o.delta) : b.high;
  if (advantage > 0) return {0, std::min(1.0 + o.clip_high, most)};
  return {1.0 - o.clip_low, std::max(1.0 + o.clip_high, most)};
}

}  // namespace tigon::reference::linear_policy
