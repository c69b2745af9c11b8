// SPDX-License-Identifier: Apache-2.0
// A row that a block, or on sm_90 a cluster of blocks, keeps whole on chip. Each thread holds as
// many 16-byte vectors in registers as fit and puts the rest in shared memory. A thread reads back
// only what it loaded itself.
//
// A cluster works on one row and ends. Other blocks of the multiprocessor hide the latency of its
// loads and of its reduction, so shapes leave room for two blocks and more. Later rows are
// prefetched into L2 meanwhile. Clusters that stay for further rows are slower.
#pragma once
#include <algorithm>

#include "kernels/device/async.h"
#include "kernels/device/cluster_exchange.h"
#include "kernels/device/device_limits.h"
#include "kernels/device/exp_sum.h"
#include "kernels/device/pieces.h"
#include "kernels/device/row_slice.h"

namespace tigon {

// In these shapes `lanes` are the threads of a block; `vectors` are those in registers.
constexpr bool is_held(const LaunchShape& shape) { return shape.vectors > 0; }
inline constexpr size_t kHeldStaticShared = 1024;  // upper bound, beside the vectors

// Shared memory of a block, for rows of so many vectors.
inline size_t held_bytes(const LaunchShape& shape, int64_t vectors) {
  const int64_t part = ceil_div(vectors, int64_t{shape.cluster});
  const int64_t each = ceil_div(part, int64_t{shape.lanes});
  return static_cast<size_t>(std::max<int64_t>(each - shape.vectors, 0) * shape.lanes) * 16;
}
// Shorter rows have kernels of their own; whether holding them would be faster was not measured.
inline constexpr int64_t kMinHeldVectors = 1025;
// Whether rows of so many vectors are to be held, and this shape can hold them. Shapes with three
// blocks and more per multiprocessor use registers only: two blocks with shared memory are faster.
inline bool can_hold(const LaunchShape& shape, int64_t vectors) {
  if (vectors < kMinHeldVectors || !has_clusters_for(shape)) return false;
  const size_t bytes = held_bytes(shape, vectors);
  if (bytes == 0) return true;
  if (shape.cluster == 1 && shape.blocks_per_sm > 2) return false;
  const DeviceLimits& limits = device_limits();
  const size_t block = bytes + kHeldStaticShared;
  return block <= limits.shared_per_block &&
         (block + limits.reserved_per_block) * static_cast<size_t>(shape.blocks_per_sm) <=
             limits.shared_per_multiprocessor;
}

// How many rows ahead blocks prefetch to keep `bytes` in flight to L2.
constexpr int64_t held_rows_ahead(int64_t vectors, int64_t bytes) {
  return std::max<int64_t>(bytes / (vectors * 16), 1);
}

// The row of this cluster.
TIGON_DEVICE int64_t held_row() { return blockIdx.x >> __popc(cluster_size() - 1); }

// The block's part of the row at x, asked to be in L2 by one thread.
template <class T>
TIGON_DEVICE void prefetch_held(const T* x, int columns) {
  const Slice s = slice_of<kVec<T>>(x, columns, cluster_rank(), cluster_size());
  if (s.last > s.first)
    prefetch_bulk(x + s.head + s.first * kVec<T>, static_cast<unsigned>(s.last - s.first) * 16);
}

template <class T, int kThreads, int kPieces>
class HeldRow {
  static constexpr int kWidth = kVec<T>;

 public:
  using RowPiece = Piece<T, kWidth>;

  // Asks for the slice of the row at x. slots: held_bytes() of shared memory.
  TIGON_DEVICE HeldRow(const T* x, const Slice& s, RowPiece* slots)
      : slots_(slots + threadIdx.x),
        column_(s.head + (s.first + static_cast<int>(threadIdx.x)) * kWidth),
        remaining_(s.last - s.first - static_cast<int>(threadIdx.x)) {
    leave_unset(resident_);
    const T* const from = x + column_;
    TIGON_UNROLL
    for (int p = 0; p < kPieces; ++p)
      if (p * kThreads < remaining_)
        resident_[p] = load_piece_stream<kWidth>(from + p * kThreads * kWidth);
    for (int p = kPieces; p * kThreads < remaining_; ++p)
      async_copy<16>(slots_ + (p - kPieces) * kThreads, from + p * kThreads * kWidth);
    async_commit();
    issue_loads();
  }

  // f(values, column) of each of the thread's vectors: its kWidth values, from that column on.
  template <class F>
  TIGON_DEVICE void for_each(const F& f) {
    for_each_piece([&](const RowPiece& piece, int column) {
      float values[kWidth];
      unpack_piece(piece, values);
      f(values, column);
    });
  }
  // What f makes of the values is written to the row `to`.
  template <class F>
  TIGON_DEVICE void store_each(T* to, const F& f) {
    for_each([&](float(&values)[kWidth], int column) {
      f(values);
      store_piece(to + column, values);
    });
  }
  // The largest of all values; -inf where the thread has none. NaNs count for nothing.
  TIGON_DEVICE float max() {
    float values[kWidth];
    for (float& v : values) v = -INFINITY;
    RowPiece largest = pack_piece<T>(values);
    for_each_piece([&](const RowPiece& piece, int) { largest = larger_elements(largest, piece); });
    unpack_piece(largest, values);
    float max = values[0];
    for (const float v : values) max = fmaxf(max, v);
    return max;
  }
  // The thread that holds a vector's column; -1 where another block does.
  static TIGON_DEVICE int holder_of(int column, const Slice& s) {
    const int vector = (column - s.head) / kWidth;
    return vector >= s.first && vector < s.last ? (vector - s.first) % kThreads : -1;
  }

 private:
  template <class F>
  TIGON_DEVICE void for_each_piece(const F& f) {
    TIGON_UNROLL
    for (int p = 0; p < kPieces; ++p)
      if (p * kThreads < remaining_) {
        keep_packed(resident_[p]);
        f(resident_[p], column_ + p * kThreads * kWidth);
      }
    async_wait<0>();
    for (int p = kPieces; p * kThreads < remaining_; ++p)
      f(slots_[(p - kPieces) * kThreads], column_ + p * kThreads * kWidth);
  }

  RowPiece* const slots_;
  const int column_;     // of the thread's first vector
  const int remaining_;  // vectors of the slice from there on
  RowPiece resident_[kPieces];
};

// The sum of exponentials of all that the thread holds, and of `end` where it has one beside them.
// The maximum is found first: no sum has to be rescaled.
template <class Row>
TIGON_DEVICE ExpSum held_exp_sum(Row& row, bool has_end, float end) {
  ExpSum all;
  all.max = fmaxf(all.max, row.max());
  if (has_end) all.max = fmaxf(all.max, end);
  const ShiftedExp shifted(all.max);
  if (has_end) all.sum = shifted.part(end);
  row.for_each([&](auto& x, int) {
    for (const float v : x) all.sum += shifted.part(v);
  });
  all.sum *= shifted.fix;
  return all;
}

// Launches kernel(args, rows ahead) with a block or a cluster for each row of so many vectors.
// dependent: as LaunchConfig has it.
template <class Kernel, class Args>
Status launch_held(const LaunchShape& shape, int64_t rows, int64_t vectors, int64_t bytes_ahead,
                   Stream stream, Kernel kernel, const Args& args, bool dependent = false) {
  const LaunchConfig config{.grid = dim3(static_cast<unsigned>(rows * shape.cluster)),
                            .block = dim3(static_cast<unsigned>(shape.lanes)),
                            .shared_bytes = held_bytes(shape, vectors),
                            .stream = stream,
                            .cluster = static_cast<unsigned>(shape.cluster),
                            .dependent = dependent};
  return launch(config, kernel, args, held_rows_ahead(vectors, bytes_ahead));
}

}  // namespace tigon
