// SPDX-License-Identifier: Apache-2.0
// The next rows of one tensor, for a kernel that walks over rows. They are requested before work on
// a row starts, so that memory is never idle.
#pragma once
#include "kernels/device/async.h"
#include "kernels/device/row_lanes.h"

namespace tigon {

// kStages rows are in flight to shared memory, in 16-byte pieces. A thread copies what it will read
// itself, so it waits for nobody else. With one stage, and for single elements, which no copy is
// narrow enough for, a thread reads one row ahead into registers.
//
// A group of lanes takes the rows first_row(), + step(), ... The queues of a kernel move together:
// request() of each, close(); then for every row await(), receive() of each, the next requests,
// close(). To leave a row in shared memory, use at() in place of receive(), and request the next
// row when the thread has read this one for the last time. `mine`: the thread has its p-th piece of
// a row if p * kPieceStride < mine.
template <class T, int kWidth, int kLanes, int kPieces, int kStages>
class RowQueue {
  // Slots of a piece: of a warp where the block is fitted, else of the block.
  static constexpr int kPitch = is_fitted(kLanes) ? 32 : kRowThreads<kLanes>;

 public:
  using RowPiece = Piece<T, kWidth>;
  static constexpr bool kCopies = kWidth > 1 && kStages > 1;  // to shared memory
  static constexpr int kDepth = kCopies ? kStages : 1;        // rows ahead

  // Vectors of shared memory: of a thread, and of a block, or of a warp where the block is fitted.
  static constexpr int kSlots = kCopies ? kDepth * kPieces : 0;
  static constexpr int kVectors = kSlots * kPitch;

  static TIGON_DEVICE int64_t first_row() {
    return int64_t{blockIdx.x} * kRowsPerBlock<kLanes> + threadIdx.x / kLanes;
  }
  static TIGON_DEVICE int64_t step() { return int64_t{gridDim.x} * kRowsPerBlock<kLanes>; }

  // Rows `stride` elements apart from `rows` on.
  TIGON_DEVICE RowQueue(Vec<T>* shared, const T* rows, int64_t stride)
      : slots_(shared + threadIdx.x),
        from_(rows + first_row() * stride + threadIdx.x % kLanes * kWidth),
        advance_(step() * stride) {
    if constexpr (is_fitted(kLanes)) {
      slots_ = shared + threadIdx.x / 32 * (32 * kSlots) + threadIdx.x % 32;
      from_ = rows + first_row() * stride + first_piece<kLanes, kPieces>() * kWidth;
    }
  }

  // Of the next row; mine is 0 beyond the last one. 0 <= slot < kDepth.
  TIGON_DEVICE void request(int mine, int slot) {
    for_lane_pieces<kLanes, kPieces>(
        mine, [&](int p) { request_piece(from_ + p * kPieceStride<kLanes> * kWidth, p, slot); });
    from_ += advance_;
  }
  TIGON_DEVICE void receive(int mine, int slot, RowPiece (&to)[kPieces]) const {
    for_lane_pieces<kLanes, kPieces>(mine, [&](int p) { to[p] = received(slot, p); });
  }
  // request() and receive() of one piece, for a kernel that finds addresses itself.
  TIGON_DEVICE void request_piece(const T* from, int p, int slot) {
    if constexpr (kCopies)
      async_copy<16>(&slot_of(slot, p), from);
    else
      next_[p] = load_piece_stream<kWidth>(from);
  }
  TIGON_DEVICE RowPiece received(int slot, int p) const {
    if constexpr (kCopies)
      return at(slot, p);
    else
      return next_[p];
  }

  // The thread's p-th piece of an awaited row; only of shared memory.
  TIGON_DEVICE RowPiece at(int slot, int p) const {
    static_assert(kCopies);
    return dtype_detail::bits_as<RowPiece>(slot_of(slot, p));
  }

  static TIGON_DEVICE void close() {
    if constexpr (kCopies) async_commit();
  }
  // The oldest row that was requested and not yet awaited; kUnrequested rows before it have not
  // been requested again.
  template <int kUnrequested = 0>
  static TIGON_DEVICE void await() {
    if constexpr (kCopies) async_wait<kDepth - 1 - kUnrequested>();
  }

 private:
  TIGON_DEVICE Vec<T>& slot_of(int slot, int p) const {
    return slots_[(slot * kPieces + p) * kPitch];
  }

  Vec<T>* slots_;    // the thread's first
  const T* from_;    // the thread's first piece of the next row to request
  int64_t advance_;  // elements from row to row
  RowPiece next_[kCopies ? 1 : kPieces] = {};
};

// Bytes of shared memory that a queue takes of a block; 0 where it reads into registers.
constexpr size_t queue_bytes(const LaunchShape& shape) {
  if (shape.stages == 1) return 0;
  return sizeof(Vec<float>) *
         static_cast<size_t>(row_threads(shape.lanes) * shape.vectors * shape.stages);
}
// A row of so many pieces leaves registers for the sums of its columns only.
inline constexpr int kLongRow = 2048;
TIGON_HOST_DEVICE constexpr bool is_long(const LaunchShape& shape) {
  return shape.lanes * shape.vectors >= kLongRow;
}
constexpr size_t two_queues(const LaunchShape& shape) { return 2 * queue_bytes(shape); }

}  // namespace tigon
