// How linear_cross_entropy cuts its logits, and the scratch that it works in.
#pragma once
#include <algorithm>
#include <type_traits>

#include "kernels/device/device.h"
#include "kernels/device/loss_columns.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "kernels/linear_cross_entropy/vocabulary_cut.h"

namespace tigon::linear_cross_entropy {

template <class Args>
concept WritesGradients = requires(const Args& a) {
  a.dw.data;
};

// Rows per chunk: as few chunks as the budget allows, of equal size, rounded up to whole tiles of
// the GEMM where the budget allows that.
template <class Args>
int64_t chunk_rows(const Args& a) {
  const int64_t rows = a.x.shape[0];
  const int64_t row_bytes =
      round_up(a.w.shape[0], kPadding) * static_cast<int64_t>(sizeof(typename Args::Elem));
  const int64_t most = std::max<int64_t>(1, a.logits_bytes / row_bytes);
  const int64_t chunks = std::max<int64_t>(1, ceil_div(rows, most));
  int64_t chunk = ceil_div(rows, chunks);
  for (const int64_t tile : {int64_t{256}, int64_t{128}}) {
    if (round_up(chunk, tile) > most) continue;
    chunk = round_up(chunk, tile);
    break;
  }
  return std::clamp<int64_t>(chunk, 1, std::max<int64_t>(1, rows));
}

template <class Args>
int64_t chunk_columns(const Args& a) {
  const int64_t column_bytes =
      std::max<int64_t>(1, a.x.shape[0]) * static_cast<int64_t>(sizeof(typename Args::Elem));
  return chunk_columns(a.w.shape[0], column_bytes, a.logits_bytes);
}

// The part of the logits [T, V] that is held at once.
struct Chunk {
  int64_t row, rows, column, columns;
};

// The scratch and how the logits are cut.
template <class Elem>
struct Plan {
  int64_t chunk = 0, chunks = 0, stride = 0;  // rows or columns per chunk
  LossTotals* totals = nullptr;               // [1], where needs_totals()
  // [T] each, where they are reduced.
  float *loss = nullptr, *z_part = nullptr, *accuracy = nullptr, *entropy = nullptr;
  LossState* state = nullptr;  // [T], where the vocabulary is cut
  Elem* logits = nullptr;      // [rows of a chunk, stride]
  // Where it is summed over chunks and is not fp32 itself.
  float* dw_sum = nullptr;  // [V, H]
  float* dx_sum = nullptr;  // [T, H]
  bool sums_dw = false, sums_dx = false;
  float* bias_sums = nullptr;  // [bias_groups(), V], where dbias is computed
  Scratch gemm;
  size_t bytes = 0;
};

template <class Args>
using PlanOf = Plan<typename Args::Elem>;

template <class Args>
Chunk chunk_at(const Args& a, const PlanOf<Args>& p, int64_t index) {
  const int64_t rows = a.x.shape[0], columns = a.w.shape[0];
  if (a.split == Split::kVocabulary) {
    const Columns c = columns_of(columns, p.chunk, index);
    const bool whole = index == 0 && planted("linear_cross_entropy.first_columns_whole");
    return {0, rows, c.first, whole ? p.chunk : c.count};
  }
  const int64_t first = index * p.chunk;
  return {first, std::min(p.chunk, rows - first), 0, columns};
}

}  // namespace tigon::linear_cross_entropy
