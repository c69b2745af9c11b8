// The next rows of one tensor, for a kernel that walks over rows: requested before this row is
// worked on, so that memory is never idle.
#pragma once
#include "kernels/device/async.h"
#include "kernels/device/row_lanes.h"

namespace tigon {

// kStages rows are on their way to shared memory, in 16-byte pieces. A thread copies what it will
// read itself, so it waits for nobody else. Single elements are read one row ahead into registers:
// there is no copy of two bytes; and so are pieces where kStages is 1. The queues of a kernel move
// together: request() of each, close(); and for every row await(), receive() of each, the next
// requests, close(). A row that registers cannot hold is read where it landed: at() in place of
// receive(), and the next requests when the thread is through with it.
template <class T, int kWidth, int kLanes, int kPieces, int kStages>
class RowQueue {
  static constexpr int kPitch = kRowThreads<kLanes>;

 public:
  using RowPiece = Piece<T, kWidth>;
  static constexpr bool kCopies = kWidth > 1 && kStages > 1;                // to shared memory
  static constexpr int kDepth = kCopies ? kStages : 1;                      // rows ahead
  static constexpr int kVectors = kCopies ? kDepth * kPieces * kPitch : 0;  // of shared memory

  TIGON_DEVICE explicit RowQueue(Vec<T>* shared) : slots_(shared + threadIdx.x) {}

  // row: [pieces * kWidth]; without pieces nothing is read. 0 <= slot < kDepth.
  TIGON_DEVICE void request(const T* row, int64_t pieces, int slot) {
    TIGON_UNROLL
    for (int p = 0; p < kPieces; ++p)
      if (const int i = piece_of(p); i < pieces) {
        if constexpr (kCopies)
          async_copy<16>(&slot_of(slot, p), row + i * kWidth);
        else
          next_[p] = load_piece_stream<kWidth>(row + i * kWidth);
      }
  }
  // Row `row` of a tensor [T, H]; beyond the last row nothing is read.
  template <class Rows>
  TIGON_DEVICE void request_row(const Rows& rows, int64_t row, int slot) {
    const int64_t pieces = row < rows.shape[0] ? rows.shape[1] / kWidth : 0;
    request(rows.data + row * rows.stride[0], pieces, slot);
  }
  TIGON_DEVICE void receive(int64_t pieces, int slot, RowPiece (&kept)[kPieces]) const {
    TIGON_UNROLL
    for (int p = 0; p < kPieces; ++p)
      if (piece_of(p) < pieces) {
        if constexpr (kCopies)
          kept[p] = at(slot, p);
        else
          kept[p] = next_[p];
      }
  }

  // The thread's p-th piece of an awaited row; only of shared memory.
  TIGON_DEVICE RowPiece at(int slot, int p) const {
    static_assert(kCopies);
    return dtype_detail::bits_as<RowPiece>(slot_of(slot, p));
  }

  static TIGON_DEVICE void close() {
    if constexpr (kCopies) async_commit();
  }
  static TIGON_DEVICE void await() {
    if constexpr (kCopies)
      if (!planted("row_queue.not_awaited")) async_wait<kDepth - 1>();
  }

 private:
  static TIGON_DEVICE int piece_of(int p) {
    return p * kLanes + static_cast<int>(threadIdx.x) % kLanes;
  }
  TIGON_DEVICE Vec<T>& slot_of(int slot, int p) const {
    return slots_[(slot * kPieces + p) * kPitch];
  }

  Vec<T>* slots_;
  RowPiece next_[kCopies ? 1 : kPieces] = {};
};

// Bytes of shared memory that a queue takes of a block; 0 where it reads into registers.
constexpr size_t queue_bytes(const LaunchShape& shape) {
  if (shape.stages == 1) return 0;
  const int threads = shape.lanes < 128 ? 128 : shape.lanes;
  return sizeof(Vec<float>) * static_cast<size_t>(threads * shape.pieces * shape.stages);
}
// A row of so many pieces leaves registers only for the sums of its columns.
inline constexpr int kLongRow = 2048;
TIGON_HOST_DEVICE constexpr bool is_long(const LaunchShape& shape) {
  return shape.lanes * shape.pieces >= kLongRow;
}
constexpr size_t two_queues(const LaunchShape& shape) { return 2 * queue_bytes(shape); }

}  // namespace tigon
