// A row that a block holds whole: of each thread as many 16-byte vectors in registers as fit, and
// the others in shared memory. Who loads a vector is the only one to read it. A block has one row
// and ends; the latency of its loads and of its reduction is covered by rows of blocks to come,
// which are on their way to L2 meanwhile.
//
// Blocks that stay for further rows (row_ring.h) have no rows ahead but what shared memory holds:
// with V = 32,000 in 16 bits softmax had 90% of a copy's speed on an H200 so, and has 98% now. But
// rows of several blocks are faster so: clusters of this kind had 77% with V = 262,144.
#pragma once
#include <algorithm>

#include "kernels/device/async.h"
#include "kernels/device/device_limits.h"
#include "kernels/device/exp_sum.h"
#include "kernels/device/pieces.h"
#include "kernels/device/row_slice.h"

namespace tigon {

// lanes: threads of a block; pieces: vectors of a thread in registers. Blocks that share a
// multiprocessor have registers only.
constexpr bool is_held(const LaunchShape& shape) { return shape.pieces > 0 && shape.stages == 1; }
inline constexpr size_t kHeldStaticShared = 1024;  // upper bound, beside the vectors

// Shared memory for rows of so many vectors.
inline size_t held_bytes(const LaunchShape& shape, int64_t vectors) {
  const int64_t each = (vectors + shape.lanes - 1) / shape.lanes;
  return static_cast<size_t>(std::max<int64_t>(each - shape.pieces, 0) * shape.lanes) * 16;
}
// Of narrower rows it has not been measured; 1,125 vectors (V = 9,000 in 16 bits) are 1.5 times as
// fast so on an H200 as before.
inline constexpr int64_t kLeastHeld = 1025;
// Are rows of so many vectors to be held, and can they be in this shape?
inline bool can_hold(const LaunchShape& shape, int64_t vectors) {
  if (vectors < kLeastHeld) return false;
  const size_t bytes = held_bytes(shape, vectors);
  return bytes == 0 || (shape.blocks_per_sm == 1 &&
                        bytes + kHeldStaticShared <= device_limits().shared_per_block);
}

// Rows from one to the one that its block prefetches, where `bytes` are to be on their way to L2 at
// any time.
constexpr int64_t held_rows_ahead(int64_t vectors, int64_t bytes) {
  return std::max<int64_t>(bytes / (vectors * 16), 1);
}

// The row at x, asked to be in L2 by one thread.
template <class T>
TIGON_DEVICE void prefetch_held(const T* x, int columns) {
  const Slice s = slice_of<kVec<T>>(x, columns, 0, 1);
  if (s.last > 0) prefetch_bulk(x + s.head, static_cast<unsigned>(s.last) * 16);
}

template <class T, int kThreads, int kPieces>
class HeldRow {
  static constexpr int kWidth = kVec<T>;

 public:
  using RowPiece = Piece<T, kWidth>;

  // Asks for the row at x. slots: held_bytes() of shared memory.
  TIGON_DEVICE HeldRow(const T* x, const Slice& s, RowPiece* slots)
      : slots_(slots + threadIdx.x),
        column_(s.head + static_cast<int>(threadIdx.x) * kWidth),
        left_(s.last - static_cast<int>(threadIdx.x)) {
    leave_unset(kept_);
    const T* const from = x + column_;
    TIGON_UNROLL
    for (int p = 0; p < kPieces; ++p)
      if (p * kThreads < left_) kept_[p] = load_piece_stream<kWidth>(from + p * kThreads * kWidth);
    for (int p = kPieces; p * kThreads < left_; ++p)
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
  // The thread that holds a vector's column.
  static TIGON_DEVICE int holder_of(int column, const Slice& s) {
    return (column - s.head) / kWidth % kThreads;
  }

 private:
  template <class F>
  TIGON_DEVICE void for_each_piece(const F& f) {
    TIGON_UNROLL
    for (int p = 0; p < kPieces; ++p)
      if (p * kThreads < left_) {
        keep_packed(kept_[p]);
        f(kept_[p], column_ + p * kThreads * kWidth);
      }
    if (!planted("held_row.not_awaited")) async_wait<0>();
    for (int p = kPieces; p * kThreads < left_; ++p)
      f(slots_[(p - kPieces) * kThreads], column_ + p * kThreads * kWidth);
  }

  RowPiece* const slots_;
  const int column_;  // of the thread's first vector
  const int left_;    // vectors of the row from there on
  RowPiece kept_[kPieces];
};

// The sum of exponentials of all that the thread holds, and of `end` where it has one beside them.
// The maximum is found first: no sum has to be rescaled.
template <class Row>
TIGON_DEVICE ExpSum held_exp_sum(Row& row, bool has_end, float end) {
  ExpSum all;
  all.max = fmaxf(all.max, row.max());
  if (has_end) all.max = fmaxf(all.max, end);
  if (planted("exp_sum.max_not_subtracted")) all.max = 0.0f;
  const ShiftedExp shifted(all.max);
  if (has_end) all.sum = shifted.part(end);
  row.for_each([&](auto& x, int) {
    for (const float v : x)
      if (!planted("exp_sum.nan_swallowed") || v == v) all.sum += shifted.part(v);
  });
  all.sum *= shifted.fix;
  return all;
}

// Launches kernel(args, rows ahead) with a block for each row of so many vectors.
template <class Kernel, class Args>
Status launch_held(const LaunchShape& shape, int64_t rows, int64_t vectors, int64_t bytes_ahead,
                   Stream stream, Kernel kernel, const Args& args) {
  const LaunchConfig config{.grid = dim3(static_cast<unsigned>(rows)),
                            .block = dim3(static_cast<unsigned>(shape.lanes)),
                            .shared_bytes = held_bytes(shape, vectors),
                            .stream = stream};
  return launch(config, kernel, args, held_rows_ahead(vectors, bytes_ahead));
}

}  // namespace tigon
