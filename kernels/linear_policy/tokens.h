// SPDX-License-Identifier: Apache-2.0
// What becomes of a token when the sums over its row are known: log-probability, loss and the
// factor of the row's gradient, by a thread for each row.
#pragma once
#include "kernels/linear_policy/token_losses.h"
#include "kernels/log_prob/row.h"
#include "kernels/loss/rows.h"

namespace tigon::linear_policy {

inline constexpr int kThreads = 256;  // a part of a row is a few tens of KB

// A row's sums over some columns, and its target's logit; NaN where that is in none of them. From
// the end of the columns on: lse, and dloss/dlogp.
struct RowState {
  log_prob::RowSums sums;
  float target, lse, slope;
};

// What is known of rows, and what is written of them; nullptr: not given, not wanted.
struct TokenRows {
  Options options;
  int64_t rows;
  const int64_t* target;
  const float *advantage, *old_logp, *ref_logp, *weight;
  const float* dloss;        // of each row with reduction none, else [1]
  const LossTotals* totals;  // of mean
  RowState* state;
  float *loss, *kl, *clipped, *entropy, *logp;
};

TIGON_DEVICE void store_given(float* to, int64_t row, float value) {
  if (to != nullptr) store(to + row, value);
}
TIGON_DEVICE float load_given(const float* from, int64_t row, float otherwise) {
  return from != nullptr ? load(from + row) : otherwise;
}

// dL/d(row loss) without the row's weight.
TIGON_DEVICE float upstream(const TokenRows& a, int64_t row) {
  const float g = load_given(a.dloss, a.options.reduction == Reduction::kNone ? row : 0, 1.0f);
  if (a.options.reduction != Reduction::kMean) return g;
  const float n = load(&a.totals->rows);
  return n != 0.0f ? g / n : 0.0f;
}

// k3 and its derivative by logp; 0 without a reference.
struct Divergence {
  float value, slope;
};
TIGON_DEVICE Divergence divergence(const TokenRows& a, int64_t row, float logp) {
  if (a.ref_logp == nullptr) return {0.0f, 0.0f};
  const float d = load(a.ref_logp + row) - logp, grown = expm1f(d);
  return {grown - d, -grown};
}

TIGON_KERNEL(kThreads)
token_kernel(TokenRows a) {
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= a.rows) return;
  if (load(a.target + row) == a.options.ignore_index) {
    for (float* result : {a.loss, a.kl, a.clipped, a.entropy, a.logp})
      store_given(result, row, 0.0f);
    return;
  }
  RowState* const state = a.state + row;
  const float max = load(&state->sums.max), sum = load(&state->sums.sum);
  const float log_sum = logf(sum), tau = a.options.temperature;
  const float logp = (load(&state->target) - max) / tau - log_sum;
  const float old = a.old_logp != nullptr ? load(a.old_logp + row) : logp;
  const float ratio = logp == old ? 1.0f : expf(logp - old);  // of -inf, too
  const TokenLoss f = token_loss(a.options, logp, ratio, load(a.advantage + row));
  const Divergence k3 = divergence(a, row, logp);
  const float beta = a.options.kl_weight, weight = load_given(a.weight, row, 1.0f);
  // 0 times a divergence that overflows is no 0.
  store(a.loss + row, weight * (beta != 0.0f ? f.value + beta * k3.value : f.value));
  store_given(a.kl, row, k3.value);
  store_given(a.clipped, row, f.clipped);
  store_given(a.entropy, row, log_sum - log_prob::kLn2 * (load(&state->sums.moment) / sum));
  store_given(a.logp, row, logp);
  store(&state->lse, max / tau + log_sum);
  const float slope = beta != 0.0f ? f.slope + beta * k3.slope : f.slope;
  store(&state->slope, upstream(a, row) * weight * slope);
}

// Advantages times truncated importance weights.
TIGON_KERNEL(kThreads)
importance_kernel(const float* advantage, const float* old_logp, const float* sampling_logp,
                  int64_t rows, float cap, float* to) {
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows) return;
  const float weight = expf(load(old_logp + row) - load(sampling_logp + row));
  store(to + row, load(advantage + row) * (weight > cap ? cap : weight));
}

// values * weight; without values the weight. 0 stays 0: that of an ignored row, whatever its
// weight.
TIGON_KERNEL(kThreads)
weigh_kernel(const float* weight, const float* values, int64_t rows, float* to) {
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows) return;
  const float value = load_given(values, row, 1.0f);
  store(to + row, value != 0.0f ? value * load(weight + row) : value);
}

}  // namespace tigon::linear_policy
