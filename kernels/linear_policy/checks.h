// SPDX-License-Identifier: Apache-2.0
// What a call of linear_policy must be: options, shapes and pointers.
#pragma once
#include <climits>
#include <cmath>

#include "kernels/linear_head/head.h"
#include "kernels/linear_policy/linear_policy.h"
#include "kernels/log_prob/row.h"

namespace tigon::linear_policy {

inline bool is_above_zero(float v) { return v > 0.0f && std::isfinite(v); }

inline Status check_options(const Options& o) {
  if (!log_prob::is_temperature(o.temperature))
    return invalid("linear_policy: temperature and its inverse must be finite and above 0");
  if (!(o.clip_low >= 0.0f) || !(o.clip_high >= 0.0f) || !(o.delta >= 0.0f))
    return invalid("linear_policy: clip_low, clip_high and delta must be 0 or more");
  if (!is_above_zero(o.sapo_positive) || !is_above_zero(o.sapo_negative))
    return invalid("linear_policy: sapo_positive and sapo_negative must be finite and above 0");
  if (!std::isfinite(o.kl_weight)) return invalid("linear_policy: kl_weight must be finite");
  if (!(o.importance_cap > 0.0f)) return invalid("linear_policy: importance_cap must be above 0");
  return {};
}

template <class P>
Status check_tokens(const ForwardBackward<P>& a) {
  const int64_t rows = a.x.shape[0];
  if (is_missing(a.target) || !has_shape(a.target, rows))
    return invalid("linear_policy: target must be [T]");
  if (is_missing(a.advantage) || !has_shape(a.advantage, rows))
    return invalid("linear_policy: advantage must be [T]");
  for (const auto* given : {&a.old_logp, &a.ref_logp, &a.sampling_logp, &a.weight})
    if (*given && !has_shape(*given, rows))
      return invalid("linear_policy: old_logp, ref_logp, sampling_logp and weight must be [T]");
  if (a.sampling_logp && !a.old_logp) return invalid("linear_policy: sampling_logp needs old_logp");
  if (a.kl_weight != 0.0f && !a.ref_logp && rows > 0)
    return invalid("linear_policy: kl_weight needs ref_logp");
  if (a.normaliser && !has_shape(a.normaliser, 1))
    return invalid("linear_policy: normaliser must be [1]");
  return {};
}

template <class P>
Status check_results(const ForwardBackward<P>& a) {
  const int64_t rows = a.x.shape[0], losses = a.reduction == Reduction::kNone ? rows : 1;
  if (is_missing(a.loss) || !has_shape(a.loss, losses))
    return invalid("linear_policy: loss must be [T] with reduction none, else [1]");
  for (const auto* result : {&a.kl, &a.clipped, &a.entropy})
    if (*result && !has_shape(*result, losses))
      return invalid(
          "linear_policy: kl, clipped and entropy must be [T] with reduction none, else [1]");
  if (a.logp && !has_shape(a.logp, rows)) return invalid("linear_policy: logp must be [T]");
  if (a.dloss && !has_shape(a.dloss, losses))
    return invalid("linear_policy: dloss must be [T] with reduction none, else [1]");
  return {};
}

template <class P>
Status check(const ForwardBackward<P>& a) {
  if (const Status s = linear_head::check(head_of(a)); !s.ok()) return s;
  if (a.x.shape[0] > INT_MAX) return unsupported("linear_policy: T must be below 2^31");
  if (const Status s = check_options(a); !s.ok()) return s;
  if (const Status s = check_tokens(a); !s.ok()) return s;
  return check_results(a);
}

}  // namespace tigon::linear_policy
