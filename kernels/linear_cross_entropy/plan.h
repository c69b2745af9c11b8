// SPDX-License-Identifier: Apache-2.0
// How a call is cut into chunks, and what its scratch holds.
#pragma once
#include <algorithm>
#include <type_traits>

#include "kernels/device/scratch_parts.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "kernels/linear_head/bias_gradient.h"
#include "kernels/linear_head/chunks.h"
#include "kernels/linear_head/products.h"
#include "kernels/loss/columns.h"

namespace tigon::linear_cross_entropy {

using linear_head::bias_groups;
using linear_head::ChunkOf;
using linear_head::for_chunks;
using linear_head::kPadding;
using linear_head::round_up;
using linear_head::WritesGradients;

// The plan of the products, and the scratch of the loss.
template <class Elem>
struct LossPlan : linear_head::Plan<Elem> {
  LossTotals* totals = nullptr;  // [1], where needs_totals()
  // [T] each, where they are reduced.
  float *loss = nullptr, *z_part = nullptr, *accuracy = nullptr, *entropy = nullptr;
  LossState* state = nullptr;  // [T], where the vocabulary is cut
};

template <class Args>
using LossPlanOf = LossPlan<typename Args::Elem>;

// What the products of all chunks need at most.
struct ProductScratch {
  size_t gemm_bytes = 0;
  int64_t bias_sums = 0;
};
template <class Args>
ProductScratch product_scratch(const Args& a, const LossPlanOf<Args>& p) {
  ProductScratch need;
  const auto widen = [&](const Gemm& g) {
    need.gemm_bytes = std::max(need.gemm_bytes, gemm_workspace(g));
    return Status{};
  };
  for_chunks(a, p, [&](ChunkOf<Args> c) {
    widen(logits_gemm(a, c));
    const int64_t groups = bias_groups<typename Args::Elem>(c.rows, c.columns);
    need.bias_sums = std::max(need.bias_sums, groups * c.columns);
    return for_gradient_gemms(a, p, c, widen);
  });
  return need;
}

// The rows' losses and results that are reduced.
template <class Args>
void take_losses(const Args& a, ScratchParts* parts, LossPlanOf<Args>* p) {
  const int64_t rows = a.x.shape[0];
  if (needs_totals(a, static_cast<bool>(a.class_weight))) p->totals = parts->take<LossTotals>(1);
  if (a.reduction == Reduction::kNone) return;
  const auto take = [&](bool wanted) { return wanted ? parts->take<float>(rows) : nullptr; };
  p->loss = take(true);
  p->z_part = take(static_cast<bool>(a.z_part));
  p->accuracy = take(static_cast<bool>(a.accuracy));
  p->entropy = take(static_cast<bool>(a.entropy));
}

// The gradients that are summed over chunks and then rounded.
template <class Args>
void take_sums(const Args& a, bool by_columns, ScratchParts* parts, LossPlanOf<Args>* p) {
  if constexpr (WritesGradients<Args>) {
    const int64_t rows = a.x.shape[0];
    const bool cut = rows > 0 && p->chunk < (by_columns ? a.w.shape[0] : rows);
    const bool sums = cut && !std::is_same_v<typename Args::Elem, float>;
    p->sums_dw = sums && a.dw && !by_columns;
    p->sums_dx = sums && a.dx && by_columns;
    if (p->sums_dw) p->dw_sum = parts->take<float>(a.w.shape[0] * a.x.shape[1]);
    if (p->sums_dx) p->dx_sum = parts->take<float>(rows * a.x.shape[1]);
  }
}

// data: the scratch; nullptr where only its size is asked for.
template <class Args>
LossPlanOf<Args> plan(const Args& a, void* data) {
  using Elem = typename Args::Elem;
  const int64_t rows = a.x.shape[0];
  LossPlanOf<Args> p;
  const bool by_columns = a.split == Split::kVocabulary;
  p.room = logits_room(a);
  p.chunk = by_columns ? p.room.scratch_columns : chunk_rows(a);
  p.chunks = ceil_div(rows, p.chunk);
  p.segments = linear_head::first_segment<Elem>(spare_memory(a).data);
  ScratchParts parts(data);
  take_losses(a, &parts, &p);
  if (by_columns) p.state = parts.take<LossState>(rows);
  if (rows > 0)
    p.logits = parts.take<Elem>(by_columns ? rows * round_up(p.chunk, kPadding)
                                           : p.chunk * round_up(a.w.shape[0], kPadding));
  take_sums(a, by_columns, &parts, &p);
  const ProductScratch need = product_scratch(a, p);
  if constexpr (WritesGradients<Args>)
    if (a.dbias) p.bias_sums = parts.take<float>(need.bias_sums);
  p.gemm.bytes = need.gemm_bytes;
  p.gemm.data = parts.template take<char>(static_cast<int64_t>(need.gemm_bytes));
  p.bytes = parts.bytes();
  return p;
}

}  // namespace tigon::linear_cross_entropy
