// SPDX-License-Identifier: Apache-2.0
// Leaves ignored rows out of the products. The valid rows are gathered into places before the
// chunks are computed, and their results are spread to their rows afterwards. Only the device knows
// their number, so the caller gives a bound, and the products are cut to it. Places behind the last
// valid row hold an ignored row of zeros. With more valid rows than the bound every result is NaN.
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels/device/device.h"
#include "kernels/device/scratch_parts.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "kernels/linear_head/chunks.h"
#include "kernels/signature/checks.h"

namespace tigon::linear_cross_entropy {

using linear_head::WritesGradients;

inline constexpr int kListThreads = 1024;
inline constexpr int kMoveThreads = 256;

// Which rows are gathered, in their order.
struct RowList {
  int64_t most = 0;          // places
  int64_t* row = nullptr;    // [most]: the row of a place; -1: none
  int64_t* place = nullptr;  // [T]: the place of a row; -1: ignored
  int64_t* count = nullptr;  // [1]: rows that are not ignored
};

// One block; each thread lists the rows of its share behind those of the threads before.
TIGON_KERNEL(kListThreads)
list_rows_kernel(const int64_t* target, int64_t rows, int64_t ignore_index, RowList list) {
  TIGON_SHARED(int64_t, counts, [kListThreads]);
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t first = rows * thread / kListThreads, last = rows * (thread + 1) / kListThreads;
  int64_t mine = 0;
  for (int64_t t = first; t < last; ++t) mine += load(target + t) != ignore_index;
  counts[thread] = mine;
  __syncthreads();
  for (int step = 1; step < kListThreads; step *= 2) {
    const int64_t before = thread >= step ? counts[thread - step] : 0;
    __syncthreads();
    counts[thread] += before;
    __syncthreads();
  }
  int64_t place = counts[thread] - mine;
  for (int64_t t = first; t < last; ++t) {
    const bool valid = load(target + t) != ignore_index;
    store(list.place + t, valid ? place : int64_t{-1});
    if (valid && place < list.most) store(list.row + place, t);
    place += valid;
  }
  const int64_t all = counts[kListThreads - 1];
  for (int64_t i = all + thread; i < list.most; i += kListThreads) store(list.row + i, int64_t{-1});
  if (thread == 0) store(list.count, all);
}

TIGON_DEVICE bool too_many(const RowList& list) { return load(list.count) > list.most; }

// to [columns] = from, or `otherwise` where that is null. The first `vectors` 16-byte vectors are
// moved whole.
template <class T>
TIGON_DEVICE void move_row(const T* from, T* to, int columns, int vectors, float otherwise) {
  constexpr int kWidth = kVec<T>;
  const int first = static_cast<int>(threadIdx.x), tail = vectors * kWidth + first;
  if (from != nullptr) {
    for (int i = first; i < vectors; i += kMoveThreads)
      store16(to + i * kWidth, load16(from + i * kWidth));
    for (int i = tail; i < columns; i += kMoveThreads) store(to + i, load(from + i));
    return;
  }
  float filled[kWidth];
  TIGON_UNROLL
  for (float& f : filled) f = otherwise;
  for (int i = first; i < vectors; i += kMoveThreads) store16(to + i * kWidth, pack<T>(filled));
  for (int i = tail; i < columns; i += kMoveThreads) store(to + i, from_float<T>(otherwise));
}

template <class T>
struct GatheredRows {
  const T* x = nullptr;
  int64_t stride = 0;
  const int64_t* target = nullptr;
  const float* dloss = nullptr;  // [T]; nullptr: none, or one of all rows
  T* to_x = nullptr;             // [places, columns]
  int64_t* to_target = nullptr;
  float* to_dloss = nullptr;
  int columns = 0, vectors = 0;
};

template <class T>
TIGON_KERNEL(kMoveThreads)
gather_rows_kernel(GatheredRows<T> g, int64_t ignore_index, RowList list) {
  const int64_t place = blockIdx.x, row = load(list.row + place);
  move_row(row >= 0 ? g.x + row * g.stride : nullptr, g.to_x + place * g.columns, g.columns,
           g.vectors, 0.0f);
  if (threadIdx.x != 0) return;
  int64_t target = row >= 0 ? load(g.target + row) : ignore_index;
  if (too_many(list)) target = ignore_index == -1 ? -2 : -1;  // no class: the row becomes NaN
  store(g.to_target + place, target);
  if (g.dloss != nullptr) store(g.to_dloss + place, row >= 0 ? load(g.dloss + row) : 0.0f);
}

// A result by places and by rows; `to` is nullptr where it is not wanted.
struct RowResult {
  const float* from = nullptr;
  float* to = nullptr;
};
inline constexpr int kRowResults = 5;  // lse, loss, z_part, accuracy, entropy

template <class T>
struct SpreadRows {
  const T* dx = nullptr;  // [places, columns]
  T* to_dx = nullptr;     // nullptr: not wanted
  int64_t stride = 0;
  int columns = 0, vectors = 0;
  RowResult results[kRowResults] = {};
  float* reduced[kRowResults - 1] = {};  // [1] each, that become NaN with too many rows
};

template <class T>
TIGON_KERNEL(kMoveThreads)
spread_rows_kernel(SpreadRows<T> s, RowList list) {
  const int64_t row = blockIdx.x;
  int64_t place = load(list.place + row);
  const bool failed = too_many(list), has = !failed && place >= 0 && place < list.most;
  const float otherwise = failed ? NAN : 0.0f;
  if (s.to_dx != nullptr)
    move_row(has ? s.dx + place * s.columns : nullptr, s.to_dx + row * s.stride, s.columns,
             s.vectors, otherwise);
  if (threadIdx.x != 0) return;
  for (const RowResult& r : s.results)
    if (r.to != nullptr) store(r.to + row, has ? load(r.from + place) : otherwise);
  if (row == 0 && failed)
    for (float* reduced : s.reduced)
      if (reduced != nullptr) store(reduced, NAN);
}

template <class Args>
bool gathers(const Args& a) {
  return a.max_valid_rows >= 0 && a.x.shape[0] > 0;
}

// The call on the gathered rows, and what it is made of.
template <class Args>
struct Gathered {
  Args call;
  RowList list = {};
  size_t bytes = 0;  // of scratch, in front of the call's own
};

template <class Args>
Gathered<Args> gathered(const Args& a, void* data) {
  using Elem = typename Args::Elem;
  const int64_t rows = a.x.shape[0], hidden = a.x.shape[1];
  Gathered<Args> g{.call = a};
  // At least one place, so that an unexpected row is reported.
  const int64_t most = g.list.most = std::clamp<int64_t>(a.max_valid_rows, 1, rows);
  ScratchParts parts(data);
  g.list.row = parts.take<int64_t>(most);
  g.list.place = parts.take<int64_t>(rows);
  g.list.count = parts.take<int64_t>(1);
  Args& c = g.call;
  c.max_valid_rows = -1;
  c.x = view(static_cast<const Elem*>(parts.take<Elem>(most * hidden)), most, hidden);
  c.target = view(static_cast<const int64_t*>(parts.take<int64_t>(most)), most);
  c.lse = view(parts.take<float>(most), most);
  const bool none = a.reduction == Reduction::kNone;
  // Without memory a tensor that is given stays given: sizes depend on that.
  const auto per_row = [&](auto& v) {
    if (!v) return;
    float* const part = parts.take<float>(most);
    v = {part != nullptr ? part : v.data, {most}, {1}};
  };
  if (none) {
    c.loss = view(parts.take<float>(most), most);
    for (auto* v : {&c.z_part, &c.accuracy, &c.entropy}) per_row(*v);
  }
  if constexpr (WritesGradients<Args>) {
    if (none) per_row(c.dloss);
    if (a.dx) {
      Elem* const part = parts.take<Elem>(most * hidden);
      c.dx = view(part != nullptr ? part : a.dx.data, most, hidden);
    }
  }
  parts.take<char>(0);
  g.bytes = ceil_div(parts.bytes(), size_t{256}) * 256;
  if (data != nullptr) c.scratch.data = static_cast<char*>(data) + g.bytes;
  c.scratch.bytes = a.scratch.bytes - std::min(a.scratch.bytes, g.bytes);
  return g;
}

template <class Args>
Status gather_rows(const Args& a, const Gathered<Args>& g, Stream stream) {
  using Elem = typename Args::Elem;
  const Status listed =
      launch({.grid = dim3(1), .block = dim3(kListThreads), .stream = stream}, list_rows_kernel,
             a.target.data, a.x.shape[0], a.ignore_index, g.list);
  if (!listed.ok()) return listed;
  const int columns = static_cast<int>(a.x.shape[1]);
  const bool aligned = columns % kVec<Elem> == 0 && rows_aligned16(a.x);
  GatheredRows<Elem> rows{.x = a.x.data,
                          .stride = a.x.stride[0],
                          .target = a.target.data,
                          .to_x = const_cast<Elem*>(g.call.x.data),
                          .to_target = const_cast<int64_t*>(g.call.target.data),
                          .columns = columns,
                          .vectors = aligned ? columns / kVec<Elem> : 0};
  if constexpr (WritesGradients<Args>) {
    if (a.reduction == Reduction::kNone) rows.dloss = a.dloss.data;
    rows.to_dloss = const_cast<float*>(g.call.dloss.data);
  }
  return launch({.grid = dim3(static_cast<unsigned>(g.list.most)),
                 .block = dim3(kMoveThreads),
                 .stream = stream},
                gather_rows_kernel<Elem>, rows, a.ignore_index, g.list);
}

template <class Args>
Status spread_rows(const Args& a, const Gathered<Args>& g, Stream stream) {
  using Elem = typename Args::Elem;
  const bool none = a.reduction == Reduction::kNone;
  SpreadRows<Elem> rows{.columns = static_cast<int>(a.x.shape[1])};
  const View<float, 1>* const from[] = {&g.call.lse, &g.call.loss, &g.call.z_part, &g.call.accuracy,
                                        &g.call.entropy};
  const View<float, 1>* const to[] = {&a.lse, &a.loss, &a.z_part, &a.accuracy, &a.entropy};
  for (int i = 0; i < kRowResults; ++i) {
    if (i == 0 || none)
      rows.results[i] = {from[i]->data, to[i]->data};
    else
      rows.reduced[i - 1] = to[i]->data;
  }
  if constexpr (WritesGradients<Args>) {
    rows.dx = g.call.dx.data;
    rows.to_dx = a.dx.data;
    rows.stride = a.dx.stride[0];
    const bool aligned = rows.columns % kVec<Elem> == 0 && rows_aligned16(a.dx);
    rows.vectors = aligned ? rows.columns / kVec<Elem> : 0;
  }
  return launch({.grid = dim3(static_cast<unsigned>(a.x.shape[0])),
                 .block = dim3(kMoveThreads),
                 .stream = stream},
                spread_rows_kernel<Elem>, rows, g.list);
}

}  // namespace tigon::linear_cross_entropy
