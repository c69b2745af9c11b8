// SPDX-License-Identifier: Apache-2.0
// One row of a loss: its loss and results from its statistics, and the factors of its gradient.
#pragma once
#include <cmath>

#include "kernels/loss/forms.h"
#include "kernels/loss/rows.h"

namespace tigon {

// The least form that these options and results need.
template <class T>
LossForm form_of(const LossRows<T>& a) {
  if (a.class_weight != nullptr || a.z_part != nullptr || a.accuracy != nullptr ||
      a.entropy != nullptr)
    return LossForm::kGeneral;
  return a.options.softcap > 0.0f ? LossForm::kSoftcap : LossForm::kPlain;
}
// Returns run.operator()<form>() of it.
template <class T, class Run>
auto with_loss_form(const LossRows<T>& a, const Run& run) {
  switch (form_of(a)) {
    case LossForm::kGeneral:
      return run.template operator()<LossForm::kGeneral>();
    case LossForm::kSoftcap:
      return run.template operator()<LossForm::kSoftcap>();
    default:
      return run.template operator()<LossForm::kPlain>();
  }
}

// Weights of the held columns that smoothing takes, or nullptr: 1 each.
template <class T>
TIGON_DEVICE const float* smoothing_weights(const LossRows<T>& a) {
  if (a.options.label_smoothing == 0.0f || a.class_weight == nullptr) return nullptr;
  return a.class_weight + a.first_column;
}

// Factors of a row's loss and gradient, from class weights and from the mean.
struct RowFactors {
  float upstream;    // of the gradient
  float weight;      // of the target's class
  float z_loss;      // so that the division by the weights is one by the rows
  float class_mean;  // mean of all class weights, for smoothing
  float per_class;   // what smoothing takes off each class; of the gradient
};

template <LossForm kForm, class T>
TIGON_DEVICE RowFactors factors_of(const LossRows<T>& a, int64_t row, int64_t target) {
  const bool mean = a.options.reduction == Reduction::kMean;
  RowFactors f = {1.0f, 1.0f, a.options.z_loss, 1.0f, 0.0f};
  const bool per_row = a.options.reduction == Reduction::kNone;
  if (a.dloss != nullptr) f.upstream = load(a.dloss + (per_row ? row : 0));
  const float rows = mean ? load(&a.totals->rows) : 1.0f;
  f.upstream = rows != 0.0f ? f.upstream / rows : 0.0f;  // a normaliser may be 0
  if (kForm != LossForm::kGeneral || a.class_weight == nullptr) return f;
  f.weight = load(a.class_weight + target);
  if (a.options.label_smoothing != 0.0f)
    f.class_mean = load(&a.totals->all_classes) / static_cast<float>(a.classes);
  if (!mean) return f;
  const float weight = load(&a.totals->weight);
  const float mean_weight = weight == rows ? 1.0f : weight / rows;  // 1 for a normaliser of 0
  f.upstream = weight != 0.0f ? f.upstream / mean_weight : 0.0f;
  f.z_loss *= mean_weight;
  return f;
}

// s.sum is of the logits times their weights.
template <class T, class Sums>
TIGON_DEVICE float row_loss(const LossRows<T>& a, const RowFactors& f, const Sums& s, float lse,
                            float target) {
  const float smoothing = a.options.label_smoothing;
  float loss = (1.0f - smoothing) * f.weight * (lse - target) + f.z_loss * lse * lse;
  // Only then, because the mean of a row with a logit of -inf is -inf.
  if (smoothing != 0.0f)
    loss += smoothing * (f.class_mean * lse - s.sum / static_cast<float>(a.classes));
  return loss;
}

// Stores what is asked for beside loss and lse; y is -1 for an invalid target.
template <class T>
TIGON_DEVICE void write_results(const LossRows<T>& a, int64_t row,
                                const Statistics<LossForm::kGeneral>& s, float lse, int y) {
  if (a.z_part != nullptr) store(a.z_part + row, a.options.z_loss * lse * lse);
  if (a.accuracy != nullptr) store(a.accuracy + row, y < 0 ? NAN : s.first == y ? 1.0f : 0.0f);
  if (a.entropy != nullptr) store(a.entropy + row, logf(s.exp.sum) - s.moment / s.exp.sum);
}

// Stores lse, loss and results of a row whose target y has the logit x_y, NaN where y is -1.
template <LossForm kForm, class T>
TIGON_DEVICE void write_row(const LossRows<T>& a, int64_t row, const Statistics<kForm>& s,
                            float lse, int y, float x_y) {
  RowFactors f = {1.0f, 1.0f, a.options.z_loss, 1.0f, 0.0f};
  if (kForm == LossForm::kGeneral && y >= 0) f = factors_of<kForm>(a, row, y);
  store(a.lse + row, lse);
  store(a.loss + row, row_loss(a, f, s, lse, x_y));
  if constexpr (kForm == LossForm::kGeneral) write_results(a, row, s, lse, y);
}

// The same of an ignored row: zeros.
template <LossForm kForm, class T>
TIGON_DEVICE void write_ignored_row(const LossRows<T>& a, int64_t row) {
  store(a.loss + row, 0.0f);
  store(a.lse + row, 0.0f);
  if (kForm == LossForm::kGeneral)
    for (float* result : {a.z_part, a.accuracy, a.entropy})
      if (result != nullptr) store(result + row, 0.0f);
}

// The gradient of any column of a row, and what is taken off at its target.
template <LossForm kForm>
struct RowGradient {
  LossGradient<kForm> of_column;
  float at_target;
};

// Factors of a row's gradient. y is the target class; -1 marks an invalid target, whose gradient is
// NaN.
template <LossForm kForm, class T>
TIGON_DEVICE RowFactors gradient_factors(const LossRows<T>& a, int64_t row, int y) {
  RowFactors f = {NAN, 1.0f, 0.0f, 0.0f, 0.0f};
  if (y >= 0) f = factors_of<kForm>(a, row, y);
  f.per_class = a.options.label_smoothing / static_cast<float>(a.classes);
  return f;
}
template <LossForm kForm, class T>
TIGON_DEVICE RowGradient<kForm> row_gradient(const LossRows<T>& a, const RowFactors& f, float lse) {
  const float g = f.upstream, smoothing = a.options.label_smoothing;
  const bool weighted = kForm == LossForm::kGeneral && a.class_weight != nullptr;
  const float probability =
      weighted ? (1.0f - smoothing) * f.weight + smoothing * f.class_mean : 1.0f;
  return {{{a.options.softcap, 1.0f / a.options.softcap},
           lse,
           g * (probability + 2.0f * f.z_loss * lse),
           g * f.per_class,
           smoothing_weights(a)},
          g * f.weight * (1.0f - smoothing)};
}

// An ignored row is not read.
TIGON_DEVICE bool is_ignored(int64_t target, const LossOptions& options) {
  return target == options.ignore_index;
}

// The sum of logits is joined where smoothing needs it.
struct JoinPlain {
  bool sums;
  using Sums = Statistics<LossForm::kPlain>;
  TIGON_DEVICE Sums operator()(const Sums& a, const Sums& b) const {
    return JoinStatistics<LossForm::kPlain>{}(a, b);
  }
  TIGON_DEVICE Sums warp(const Sums& v) const {
    return {JoinExpSums{}.warp(v.exp), sums ? warp_sum(v.sum) : 0.0f};
  }
};

}  // namespace tigon
