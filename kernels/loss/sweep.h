// SPDX-License-Identifier: Apache-2.0
// The two sweeps over a row's logits, of a block: statistics and gradient.
#pragma once
#include "kernels/device/device.h"
#include "kernels/device/row_slice.h"
#include "kernels/loss/forms.h"

namespace tigon {

// 16-byte loads in flight per thread; a fourth spills on sm_80.
inline constexpr int kBatch = 3;

template <class T, int kThreads>
TIGON_DEVICE void fill_zero(T* x, const Slice& s, int columns, unsigned rank) {
  constexpr int kWidth = kVec<T>;
  float zeros[kWidth] = {};
  for (int i = s.first + static_cast<int>(threadIdx.x); i < s.last; i += kThreads)
    store16(x + s.head + i * kWidth, pack<T>(zeros));
  for_each_end<kThreads>(s, columns, rank, threadIdx.x,
                         [&](int c) { store(x + c, from_float<T>(0.0f)); });
}

// First sweep: the row's statistics; the first `resident` vectors of the slice stay in shared
// memory.
template <int kThreads, LossForm kForm, class T>
TIGON_DEVICE Statistics<kForm> read_row(const T* x, const Slice& s, int columns, unsigned rank,
                                        Vec<T>* on_chip, int resident,
                                        const AddLogits<kForm>& add) {
  constexpr int kWidth = kVec<T>;
  Statistics<kForm> statistics;
  for (int i = s.first + static_cast<int>(threadIdx.x); i < s.last; i += kBatch * kThreads) {
    const T* const from = x + s.head + i * kWidth;
    Vec<T>* const to = on_chip + (i - s.first);
    Vec<T> batch[kBatch];
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b)
      if (i + b * kThreads < s.last) batch[b] = load16(from + b * kThreads * kWidth);
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      if (i + b * kThreads >= s.last) break;
      if (i + b * kThreads - s.first < resident) to[b * kThreads] = batch[b];
      float f[kWidth];
      unpack(batch[b], f);
      add(statistics, f, s.head + (i + b * kThreads) * kWidth);
    }
  }
  for_each_end<kThreads>(s, columns, rank, threadIdx.x, [&](int c) {
    float f[1] = {to_float(load(x + c))};
    add(statistics, f, c);
  });
  return statistics;
}

// Stores the gradient of the logits `f` of the columns from `column` on. y is the target's column.
template <int kWidth, LossForm kForm, class T>
TIGON_DEVICE void write_vector(T* x, int column, float (&f)[kWidth],
                               const LossGradient<kForm>& gradient, int y, float at_target) {
  if (y < column || y >= column + kWidth) {
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) f[j] = gradient(f[j], 0.0f, column + j);
  } else {
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      f[j] = gradient(f[j], column + j == y ? at_target : 0.0f, column + j);
    }
  }
  if constexpr (kWidth == 1)
    store(x + column, from_float<T>(f[0]));
  else
    store16(x + column, pack<T>(f));
}

// Second sweep: the gradient over the logits. One loop for the vectors in shared memory and one for
// those that are read again: a choice in the loop costs more.
template <int kThreads, LossForm kForm, class T>
TIGON_DEVICE void write_gradient(T* x, const Slice& s, int columns, unsigned rank,
                                 const Vec<T>* on_chip, int resident,
                                 const LossGradient<kForm>& gradient, int y, float at_target) {
  constexpr int kWidth = kVec<T>;
  const auto write = [&](int i, const Vec<T>& logits) {
    float f[kWidth];
    unpack(logits, f);
    write_vector(x, s.head + i * kWidth, f, gradient, y, at_target);
  };
  const int end_of_resident = min(s.last, s.first + resident);
  int i = s.first + static_cast<int>(threadIdx.x);
  for (; i < end_of_resident; i += kThreads) write(i, on_chip[i - s.first]);
  for (; i < s.last; i += kThreads) write(i, load16(x + s.head + i * kWidth));
  for_each_end<kThreads>(s, columns, rank, threadIdx.x, [&](int c) {
    float f[1] = {to_float(load(x + c))};
    write_vector(x, c, f, gradient, y, at_target);
  });
}

}  // namespace tigon
