// SPDX-License-Identifier: Apache-2.0
// Sweeps over a block's slice of two rows, whose first elements lie equally far from a 16-byte
// boundary where kWidth is not 1.
#pragma once
#include "kernels/device/pieces.h"
#include "kernels/device/row_slice.h"

namespace tigon::divergence {

// The first `count` pieces of a slice in shared memory: those of x, then those of y. A thread reads
// back only what it has put there itself.
template <class T, int kWidth>
struct OnChip {
  Piece<T, kWidth>* pieces;
  int count;
  TIGON_DEVICE void put(int i, const Piece<T, kWidth>& x, const Piece<T, kWidth>& y) const {
    if (i >= count) return;
    pieces[i] = x;
    pieces[count + i] = y;
  }
};
struct Discard {
  template <class Piece>
  TIGON_DEVICE void put(int, const Piece&, const Piece&) const {}
};

// Calls f(x, y, column) for the thread's part of the slice from its vector `from` on. kBatch: loads
// in flight per thread, of each of the two rows.
template <int kWidth, int kThreads, int kBatch, class T, class Sink, class F>
TIGON_DEVICE void for_each_vector(const T* x, const T* y, const Slice& s, int from,
                                  const Sink& sink, const F& f) {
  const int count = s.last - s.first;
  for (int i = from + static_cast<int>(threadIdx.x); i < count; i += kBatch * kThreads) {
    const int column = s.head + (s.first + i) * kWidth;
    Piece<T, kWidth> xs[kBatch], ys[kBatch];
    leave_unset(xs, ys);
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      if (i + b * kThreads >= count) break;
      xs[b] = load_piece<kWidth>(x + column + b * kThreads * kWidth);
      ys[b] = load_piece<kWidth>(y + column + b * kThreads * kWidth);
    }
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      if (i + b * kThreads >= count) break;
      sink.put(i + b * kThreads, xs[b], ys[b]);
      float of_x[kWidth], of_y[kWidth];
      unpack_piece(xs[b], of_x);
      unpack_piece(ys[b], of_y);
      f(of_x, of_y, column + b * kThreads * kWidth);
    }
  }
}

template <int kThreads, class T, class F>
TIGON_DEVICE void for_each_end(const T* x, const T* y, const Slice& s, int columns, unsigned rank,
                               const F& f) {
  tigon::for_each_end<kThreads>(s, columns, rank, static_cast<int>(threadIdx.x), [&](int column) {
    float of_x[1] = {to_float(load(x + column))}, of_y[1] = {to_float(load(y + column))};
    f(of_x, of_y, column);
  });
}

template <int kWidth, int kThreads, int kBatch, class T, class F>
TIGON_DEVICE void for_each(const T* x, const T* y, const Slice& s, int columns, unsigned rank,
                           const F& f) {
  for_each_vector<kWidth, kThreads, kBatch>(x, y, s, 0, Discard{}, f);
  for_each_end<kThreads>(x, y, s, columns, rank, f);
}

// The first of two sweeps leaves in shared memory what there is room for, the second finds it
// there and reads the rest again.
inline constexpr int kBatchOfTwo = 2;
template <int kWidth, int kThreads, class T, class F>
TIGON_DEVICE void first_of_two(const T* x, const T* y, const Slice& s, int columns, unsigned rank,
                               const OnChip<T, kWidth>& on_chip, const F& f) {
  for_each_vector<kWidth, kThreads, kBatchOfTwo>(x, y, s, 0, on_chip, f);
  for_each_end<kThreads>(x, y, s, columns, rank, f);
}
template <int kWidth, int kThreads, class T, class F>
TIGON_DEVICE void second_of_two(const T* x, const T* y, const Slice& s, int columns, unsigned rank,
                                const OnChip<T, kWidth>& on_chip, const F& f) {
  const int resident = min(on_chip.count, s.last - s.first);
  for (int i = static_cast<int>(threadIdx.x); i < resident; i += kThreads) {
    float of_x[kWidth], of_y[kWidth];
    unpack_piece(on_chip.pieces[i], of_x);
    unpack_piece(on_chip.pieces[on_chip.count + i], of_y);
    f(of_x, of_y, s.head + (s.first + i) * kWidth);
  }
  for_each_vector<kWidth, kThreads, kBatchOfTwo>(x, y, s, resident, Discard{}, f);
  for_each_end<kThreads>(x, y, s, columns, rank, f);
}

}  // namespace tigon::divergence
