// SPDX-License-Identifier: Apache-2.0
// Cross entropy of rows of logits, launched by cross_entropy on a whole tensor and by
// linear_cross_entropy on one chunk of rows after the other.
#pragma once
#include "kernels/loss/options.h"

namespace tigon {

enum class LossPass : int {
  kForward,          // writes loss and lse; logits are not changed
  kBackward,         // reads lse; the gradient takes the place of the logits
  kForwardBackward,  // writes loss and lse; the gradient takes the place of the logits
};

// Totals over the rows that are not ignored, and over all classes.
struct LossTotals {
  float rows;         // their number, or the caller's normaliser
  float weight;       // sum of their targets' class weights, or the caller's normaliser
  float all_classes;  // sum of all class weights, with label smoothing
};

// Rows of logits and what belongs to them, in device memory: T rows of V < 2^31 classes. `logits`
// has all columns, in columns.h those of one part.
template <class Elem>
struct LossRows {
  LossPass pass = LossPass::kForward;
  LossOptions options;
  int64_t rows = 0, classes = 0;
  int64_t first_column = 0, columns = 0;  // held
  Elem* logits = nullptr;                 // [T, columns]
  int64_t stride = 0;                     // elements from one row of logits to the next
  const int64_t* target = nullptr;        // [T]
  const float* class_weight = nullptr;    // [V]; nullptr: 1 each
  const LossTotals* totals = nullptr;     // [1], from count_rows(), where needs_totals()
  bool after_count = false;               // the pass may overlap that, the kernel before it
  const float* dloss = nullptr;           // [T] with reduction none, else [1]; nullptr: 1
  float* loss = nullptr;                  // [T], not divided by the number of rows
  float* lse = nullptr;                   // [T]
  float *z_part = nullptr, *accuracy = nullptr, *entropy = nullptr;  // [T]; nullptr: not computed
};

// The mean divides by the number of rows that count; smoothing with weights needs their sum.
inline bool needs_totals(const LossOptions& o, bool has_weights) {
  return o.reduction == Reduction::kMean || (has_weights && o.label_smoothing != 0.0f);
}

// Enqueues the pass for all rows; kUnsupported for 2^31 rows or more.
template <class Elem>
Status loss_rows(const LossRows<Elem>& rows, Stream stream);

// Enqueues the totals of these targets; class_weight [columns] and normaliser [1] may be nullptr.
Status count_rows(const int64_t* target, int64_t rows, const LossOptions& options,
                  const float* class_weight, int64_t columns, const float* normaliser,
                  LossTotals* totals, Stream stream);

enum class DivideBy { kNothing, kRows, kWeight };

// Enqueues out[0] = sum of values [rows], divided by one of the totals (0 where that is 0, or NaN).
// Always adds in the same order.
Status reduce_rows(const float* values, int64_t rows, const LossTotals* totals, DivideBy divisor,
                   float* out, Stream stream);

// Reduces the loss, and the results beside it, of a pass over these rows.
template <class Args, class Elem>
Status reduce_results(const Args& a, const LossRows<Elem>& rows, Stream stream) {
  const bool mean = a.reduction == Reduction::kMean;
  const DivideBy by_rows = mean ? DivideBy::kRows : DivideBy::kNothing;
  const DivideBy by_weight = mean && a.class_weight ? DivideBy::kWeight : by_rows;
  const auto reduce = [&](const float* values, DivideBy divisor, const auto& out) {
    if (!out) return Status{};
    return reduce_rows(values, rows.rows, rows.totals, divisor, out.data, stream);
  };
  if (const Status s = reduce(rows.loss, by_weight, a.loss); !s.ok()) return s;
  if (const Status s = reduce(rows.z_part, by_rows, a.z_part); !s.ok()) return s;
  if (const Status s = reduce(rows.accuracy, by_rows, a.accuracy); !s.ok()) return s;
  return reduce(rows.entropy, by_rows, a.entropy);
}

}  // namespace tigon
