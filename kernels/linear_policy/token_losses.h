// SPDX-License-Identifier: Apache-2.0
// Losses of one token by its log-probability: value and derivative, which the oracle in
// reference/token_losses.h makes of the value alone. A further loss is a function here, a function
// there and a name in linear_policy.h.
#pragma once
#include "kernels/device/device.h"
#include "kernels/linear_policy/linear_policy.h"

namespace tigon::linear_policy {

struct TokenLoss {
  float value, slope;  // slope: d value / d logp
  float clipped;       // 1 beyond a bound on the ratio, else 0
};

TIGON_DEVICE TokenLoss clip_loss(const Options& o, float ratio, float advantage) {
  const float low = 1.0f - o.clip_low, high = 1.0f + o.clip_high;
  const float most = o.delta > 0.0f ? o.delta : INFINITY;
  const float first = fminf(ratio, most) * advantage;
  const float second = fminf(fmaxf(ratio, low), high) * advantage;
  const bool takes_first = first <= second;
  const bool moves = takes_first ? ratio <= most : ratio >= low && ratio <= high;
  const float value = takes_first ? first : second;
  if (!moves) return {-value, 0.0f, 1.0f};
  return {-value, -ratio * advantage, 0.0f};
}

TIGON_DEVICE TokenLoss cispo_loss(const Options& o, float logp, float ratio, float advantage) {
  const float slope = -fminf(ratio, o.clip_high) * advantage;
  return {slope * logp, slope, ratio > o.clip_high ? 1.0f : 0.0f};
}

TIGON_DEVICE TokenLoss sapo_loss(const Options& o, float ratio, float advantage) {
  const float t = advantage > 0.0f ? o.sapo_positive : o.sapo_negative;
  const float e = expf(fminf(t * (1.0f - ratio), 80.0f)), gate = 1.0f / (1.0f + e);
  return {-advantage * (4.0f / t) * gate, -4.0f * advantage * gate * gate * e * ratio, 0.0f};
}

TIGON_DEVICE TokenLoss token_loss(const Options& o, float logp, float ratio, float advantage) {
  if (ratio != ratio) return {NAN, NAN, NAN};
  switch (o.objective) {
    case Objective::kCispo:
      return cispo_loss(o, logp, ratio, advantage);
    case Objective::kSapo:
      return sapo_loss(o, ratio, advantage);
    default:
      return clip_loss(o, ratio, advantage);
  }
}

}  // namespace tigon::linear_policy
