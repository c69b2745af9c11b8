// SPDX-License-Identifier: Apache-2.0
// Gathers rows that are not ignored, and spreads their results.
//
// One block lists the rows; then a block for each place, and at last one for each row, moves its
// row of x or dx and its values.
#include "kernels/linear_head/valid_rows.h"

#include <algorithm>
#include <cmath>

#include "kernels/device/device.h"

namespace tigon::linear_head {
namespace {

constexpr int kListThreads = 1024;
constexpr int kMoveThreads = 256;

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
  const float* values = nullptr;  // [T]; nullptr: none
  T* to_x = nullptr;              // [places, columns]
  int64_t* to_target = nullptr;
  float* to_values = nullptr;
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
  if (g.values != nullptr) store(g.to_values + place, row >= 0 ? load(g.values + row) : 0.0f);
}

// Of values that come with others.
TIGON_KERNEL(kMoveThreads)
gather_values_kernel(RowValues values, RowList list) {
  const int64_t place = int64_t{blockIdx.x} * kMoveThreads + threadIdx.x;
  if (place >= list.most) return;
  const int64_t row = load(list.row + place);
  store(values.to + place, row >= 0 ? load(values.from + row) : 0.0f);
}

// D: what dx is.
template <class D>
struct SpreadRows {
  const D* dx = nullptr;  // [places, columns]
  D* to_dx = nullptr;     // nullptr: not wanted
  int64_t stride = 0;
  int columns = 0, vectors = 0;
  RowValues results[kRowResults] = {};
  float* reduced[kReducedResults] = {};  // [1] each, that become NaN with too many rows
};

template <class D>
TIGON_KERNEL(kMoveThreads)
spread_rows_kernel(SpreadRows<D> s, RowList list) {
  const int64_t row = blockIdx.x;
  int64_t place = load(list.place + row);
  const bool failed = too_many(list), has = !failed && place >= 0 && place < list.most;
  const float otherwise = failed ? NAN : 0.0f;
  if (s.to_dx != nullptr)
    move_row(has ? s.dx + place * s.columns : nullptr, s.to_dx + row * s.stride, s.columns,
             s.vectors, otherwise);
  if (threadIdx.x != 0) return;
  for (const RowValues& r : s.results)
    if (r.to != nullptr) store(r.to + row, has ? load(r.from + place) : otherwise);
  if (row == 0 && failed)
    for (float* reduced : s.reduced)
      if (reduced != nullptr) store(reduced, NAN);
}

template <class T>
int vectors_of(const View<T, 2>& rows) {
  const auto columns = static_cast<int>(rows.shape[1]);
  return columns % kVec<T> == 0 && rows_aligned16(rows) ? columns / kVec<T> : 0;
}

// Without memory a tensor that is given stays given: sizes depend on that.
float* take_places(const RowList& list, float* rows, ScratchParts* scratch) {
  float* const places = scratch->take<float>(list.most);
  return places != nullptr ? places : rows;
}
template <class D>
void take_places(const RowList& list, View<D, 2>* rows, ScratchParts* scratch) {
  if (!*rows) return;
  const int64_t columns = rows->shape[1];
  D* const places = scratch->take<D>(list.most * columns);
  *rows = view(places != nullptr ? places : rows->data, list.most, columns);
}

}  // namespace

template <class T>
ValidRows<T>::ValidRows(const Head<T>& by_rows, const View<const int64_t, 1>& target,
                        ScratchParts* scratch)
    : given_(by_rows), head_(by_rows), given_target_(target) {
  const int64_t rows = by_rows.x.shape[0], hidden = by_rows.x.shape[1];
  // At least one place, so that an unexpected row is reported.
  const int64_t most = list_.most = std::clamp<int64_t>(by_rows.max_valid_rows, 1, rows);
  list_.row = scratch->take<int64_t>(most);
  list_.place = scratch->take<int64_t>(rows);
  list_.count = scratch->take<int64_t>(1);
  head_.max_valid_rows = -1;
  head_.x = view(static_cast<const T*>(scratch->take<T>(most * hidden)), most, hidden);
  target_ = view(static_cast<const int64_t*>(scratch->take<int64_t>(most)), most);
  take_places(list_, &head_.dx, scratch);
  take_places(list_, &head_.dx_fp32, scratch);
}

template <class T>
void ValidRows<T>::take_input(View<const float, 1>* values, ScratchParts* scratch) {
  if (!*values) return;
  float* const places = take_places(list_, const_cast<float*>(values->data), scratch);
  inputs_[inputs_count_++] = {values->data, places};
  *values = view(static_cast<const float*>(places), list_.most);
}

template <class T>
void ValidRows<T>::take_result(View<float, 1>* values, ScratchParts* scratch) {
  if (!*values) return;
  float* const places = take_places(list_, values->data, scratch);
  results_[results_count_++] = {places, values->data};
  *values = view(places, list_.most);
}

template <class T>
void ValidRows<T>::take_reduced(const View<float, 1>& result) {
  if (result) reduced_[reduced_count_++] = result.data;
}

template <class T>
Status ValidRows<T>::gather(int64_t ignore_index, Stream stream) const {
  const Status listed =
      launch({.grid = dim3(1), .block = dim3(kListThreads), .stream = stream}, list_rows_kernel,
             given_target_.data, given_.x.shape[0], ignore_index, list_);
  if (!listed.ok()) return listed;
  const GatheredRows<T> rows{.x = given_.x.data,
                             .stride = given_.x.stride[0],
                             .target = given_target_.data,
                             .values = inputs_[0].from,
                             .to_x = const_cast<T*>(head_.x.data),
                             .to_target = const_cast<int64_t*>(target_.data),
                             .to_values = inputs_[0].to,
                             .columns = static_cast<int>(given_.x.shape[1]),
                             .vectors = vectors_of(given_.x)};
  const Status gathered = launch({.grid = dim3(static_cast<unsigned>(list_.most)),
                                  .block = dim3(kMoveThreads),
                                  .stream = stream},
                                 gather_rows_kernel<T>, rows, ignore_index, list_);
  if (!gathered.ok()) return gathered;
  const auto blocks = static_cast<unsigned>(ceil_div(list_.most, int64_t{kMoveThreads}));
  for (int i = 1; i < inputs_count_; ++i) {
    const Status s = launch({.grid = dim3(blocks), .block = dim3(kMoveThreads), .stream = stream},
                            gather_values_kernel, inputs_[i], list_);
    if (!s.ok()) return s;
  }
  return {};
}

template <class T>
Status ValidRows<T>::spread(Stream stream) const {
  return given_.dx_fp32 ? spread_to(head_.dx_fp32, given_.dx_fp32, stream)
                        : spread_to(head_.dx, given_.dx, stream);
}

template <class T>
template <class D>
Status ValidRows<T>::spread_to(const View<D, 2>& places, const View<D, 2>& rows,
                               Stream stream) const {
  SpreadRows<D> spread{.dx = places.data,
                       .to_dx = rows.data,
                       .stride = rows.stride[0],
                       .columns = static_cast<int>(given_.x.shape[1]),
                       .vectors = rows ? vectors_of(rows) : 0};
  std::copy(std::begin(results_), std::end(results_), spread.results);
  std::copy(std::begin(reduced_), std::end(reduced_), spread.reduced);
  return launch({.grid = dim3(static_cast<unsigned>(given_.x.shape[0])),
                 .block = dim3(kMoveThreads),
                 .stream = stream},
                spread_rows_kernel<D>, spread, list_);
}

template class ValidRows<float>;
template class ValidRows<bf16>;
template class ValidRows<f16>;

}  // namespace tigon::linear_head
