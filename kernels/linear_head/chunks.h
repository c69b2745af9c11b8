// SPDX-License-Identifier: Apache-2.0
// How the logits of a linear head are cut, and where the chunks lie.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/device/device.h"
#include "kernels/linear_head/head.h"
#include "kernels/linear_head/vocabulary_cut.h"

namespace tigon::linear_head {

// Rows per chunk: as few chunks as the budget allows, of equal size, rounded up to whole tiles of
// the GEMM where the budget allows that.
template <class T>
int64_t chunk_rows(const Head<T>& a) {
  const int64_t rows = a.x.shape[0];
  const int64_t row_bytes = round_up(a.w.shape[0], kPadding) * static_cast<int64_t>(sizeof(T));
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

// The memory of dw, which is written late and may hold logits until then.
struct Spare {
  void* data = nullptr;   // nullptr also where only sizes are asked for
  int64_t row_bytes = 0;  // of a row for each column of the logits; 0: no such memory
};

template <class T>
Spare spare_of(const View<T, 2>& dw) {
  if (!dw || dw.stride[0] != dw.shape[1]) return {};  // the gaps between rows are the caller's
  return {dw.data, dw.shape[1] * static_cast<int64_t>(sizeof(T))};
}

// Logits that are used at once need none.
template <class T>
Spare spare_memory(const Head<T>& a) {
  if (a.knows_rows) return {};
  return a.dw ? spare_of(a.dw) : spare_of(a.dw_fp32);
}

// Where segments start in that memory; null for null.
template <class T>
T* first_segment(void* memory) {
  return reinterpret_cast<T*>(round_up(reinterpret_cast<intptr_t>(memory), kSegmentAlignment));
}

template <class T>
LogitsRoom logits_room(const Head<T>& a) {
  const int64_t column_bytes = std::max<int64_t>(1, a.x.shape[0]) * static_cast<int64_t>(sizeof(T));
  return {column_bytes, scratch_columns(a.w.shape[0], column_bytes, a.logits_bytes),
          spare_memory(a).row_bytes};
}

// A part of the logits [T, V] and where it is held.
template <class T>
struct Chunk {
  int64_t row, rows, column, columns;
  T* logits;       // [rows, stride]; nullptr where only sizes are asked for
  int64_t stride;  // columns of memory for each row
};

// How the logits are cut, and the scratch of the products.
template <class T>
struct Plan {
  int64_t chunk = 0;      // most rows, or columns, of a chunk in the scratch
  int64_t chunks = 0;     // where rows are cut
  LogitsRoom room = {};   // where the vocabulary is cut
  T* logits = nullptr;    // the chunk in the scratch
  T* segments = nullptr;  // where segments start in the memory of dw
  // For a gradient that is summed over chunks and is not fp32 itself.
  float* dw_sum = nullptr;  // [V, H]
  float* dx_sum = nullptr;  // [T, H]
  bool sums_dw = false, sums_dx = false;
  float* bias_sums = nullptr;  // [bias_groups(), V], where dbias is computed
  Scratch gemm;
};

// All rows, for what does not look at logits.
template <class T>
Chunk<T> all_rows(const Head<T>& a) {
  return {0, a.x.shape[0], 0, 0, nullptr, 0};
}

// Chunk `index` of rows.
template <class T>
Chunk<T> rows_at(const Head<T>& a, const Plan<T>& p, int64_t index) {
  const int64_t rows = a.x.shape[0], columns = a.w.shape[0], first = index * p.chunk;
  return {first,    std::min(p.chunk, rows - first), 0, columns,
          p.logits, round_up(columns, kPadding)};
}

// A chunk of the columns of a round.
template <class T>
Chunk<T> columns_at(const Head<T>& a, const Plan<T>& p, const Round& round, Columns c) {
  const int64_t rows = a.x.shape[0], stride = round_up(c.count, kPadding);
  if (c.first < round.in_dw) {
    return {0, rows, c.first, c.count, p.logits, round_up(p.chunk, kPadding)};
  }
  int64_t before = c.first - round.in_dw;  // columns of other segments
  T* const logits = p.segments != nullptr ? p.segments + rows * before : nullptr;
  return {0, rows, c.first, c.count, logits, stride};
}

// Calls f(chunk) for the chunks of a round from the right until one fails.
template <class T, class F>
Status for_columns(const Head<T>& a, const Plan<T>& p, const Round& round, F f) {
  for (int64_t end = round.end; end > round.first;) {
    const Columns c = chunk_before(end, round, p.room);
    if (const Status s = f(columns_at(a, p, round, c)); !s.ok()) return s;
    end = c.first;
  }
  return {};
}

// Calls f(round) for the rounds of the columns before `end` from the right until one fails.
template <class F>
Status for_rounds(int64_t end, const LogitsRoom& room, F f) {
  while (end > 0) {
    const Round round = round_before(end, room);
    if (const Status s = f(round); !s.ok()) return s;
    end = round.first;
  }
  return {};
}

// Calls f(chunk) for every chunk until one fails.
template <class T, class F>
Status for_chunks(const Head<T>& a, const Plan<T>& p, F f) {
  if (a.split == Split::kVocabulary && a.x.shape[0] > 0)
    return for_rounds(a.w.shape[0], p.room,
                      [&](const Round& round) { return for_columns(a, p, round, f); });
  for (int64_t i = 0; i < p.chunks; ++i)
    if (const Status s = f(rows_at(a, p, i)); !s.ok()) return s;
  return {};
}

}  // namespace tigon::linear_head
