// SPDX-License-Identifier: Apache-2.0
// The scratch of a call that makes a loss of rows, and where results of rows go with it.
#pragma once
#include "kernels/device/scratch_parts.h"
#include "kernels/loss/rows.h"

namespace tigon {

template <class Args>
concept WritesLoss = requires(const Args& a) {
  a.loss.data;
};

struct LossScratch {
  LossTotals* totals = nullptr;  // [1], where needs_totals()
  // [T] each, where they are reduced.
  float *loss = nullptr, *z_part = nullptr, *accuracy = nullptr, *entropy = nullptr;
};

template <class Args>
LossScratch take_loss_scratch(const Args& a, int64_t rows, ScratchParts* parts) {
  LossScratch s;
  if (needs_totals(a, static_cast<bool>(a.class_weight))) s.totals = parts->take<LossTotals>(1);
  if constexpr (WritesLoss<Args>)
    if (a.reduction != Reduction::kNone) {
      const auto take = [&](bool wanted) { return wanted ? parts->take<float>(rows) : nullptr; };
      s.loss = take(true);
      s.z_part = take(static_cast<bool>(a.z_part));
      s.accuracy = take(static_cast<bool>(a.accuracy));
      s.entropy = take(static_cast<bool>(a.entropy));
    }
  return s;
}

// Enqueues the totals of these targets over all classes, where the call needs them.
template <class Args>
Status count_rows(const Args& a, int64_t classes, const LossScratch& s, Stream stream) {
  if (s.totals == nullptr) return {};
  return count_rows(a.target.data, a.target.shape[0], a, a.class_weight.data, classes,
                    a.normaliser.data, s.totals, stream);
}

// Where the results of the rows from `first` on are written: as they are, or to be reduced.
template <class Args, class Elem>
void write_results_to(const Args& a, const LossScratch& s, int64_t first, LossRows<Elem>* rows) {
  const auto at = [&](float* reduced, const View<float, 1>& out) {
    float* const all = a.reduction == Reduction::kNone ? out.data : reduced;
    return all != nullptr ? all + first : nullptr;
  };
  rows->loss = at(s.loss, a.loss);
  rows->z_part = at(s.z_part, a.z_part);
  rows->accuracy = at(s.accuracy, a.accuracy);
  rows->entropy = at(s.entropy, a.entropy);
}

}  // namespace tigon
