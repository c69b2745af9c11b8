// SPDX-License-Identifier: Apache-2.0
// Feeds wide rows of two inputs of one shape to a kernel whose blocks walk over rows (sm_90). Each
// warp has a ring of slots in shared memory, which bulk copies fill with chunks of this row and of
// the next ones. A warp requests the next chunk as soon as it has read a slot for the last time,
// and waits for no other warp. So loads are in flight at all times, also during a row's reduction
// and stores.
//
// A warp's part of a row is whole slots side by side. Parts differ by one slot at most, because all
// warps wait for the last one at the row's reduction. Parts of equal numbers of vectors would leave
// the last slot of every warp mostly empty where a row is a little longer than whole slots.
#pragma once
#include <algorithm>

#include "kernels/device/async.h"
#include "kernels/device/device_limits.h"
#include "kernels/device/pieces.h"
#include "kernels/device/row_slice.h"

namespace tigon {

inline constexpr int kRingInputs = 2;
inline constexpr size_t kRingStaticShared = 3072;  // upper bound, beside the slots
// Vectors of a row; fewer are faster in registers.
inline constexpr int64_t kMinRingVectors = 3500;

constexpr size_t ring_bytes(const LaunchShape& shape) {
  return static_cast<size_t>(shape.lanes) * shape.vectors * shape.stages * kRingInputs * 16;
}
// Whether this shape can walk over rows of so many 16-byte vectors.
inline bool ring_holds(const LaunchShape& shape, int64_t vectors) {
  const DeviceLimits& limits = device_limits();
  return limits.bulk_copies && limits.shared_per_block >= ring_bytes(shape) + kRingStaticShared &&
         vectors >= kMinRingVectors &&
         vectors <= int64_t{shape.lanes} * shape.vectors * shape.stages;
}

// Rows of both inputs start at the same place between two 16-byte boundaries.
template <class T>
struct RingRows {
  const T* data[kRingInputs];
  int64_t stride[kRingInputs];
  uint32_t rows;
  int columns;
};

// How a ring lies over warps, slots and vectors.
template <class T, int kThreads, int kPieces, int kSlots>
struct RingLayout {
  static constexpr int kInputs = kRingInputs;
  static constexpr int kWidth = kVec<T>;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kChunk = 32 * kPieces;     // vectors of an input in a slot
  static constexpr int kSlot = kInputs * kChunk;  // of both
  static constexpr int kBarriers = kWarps * kSlots;

  // The warp's vectors of a slice.
  struct Part {
    int first, vectors;  // none: 0 or less
  };
  static TIGON_DEVICE int warp() { return static_cast<int>(threadIdx.x / 32); }
  static TIGON_DEVICE int lane() { return static_cast<int>(threadIdx.x % 32); }
  static TIGON_DEVICE Part part_of(const Slice& s) {
    const int chunks = (s.last - s.first + kChunk - 1) / kChunk;
    const int each = chunks / kWarps, more = chunks % kWarps;  // the first warps have one more
    const int first = s.first + (warp() * each + min(warp(), more)) * kChunk;
    return {first, min((each + (warp() < more)) * kChunk, s.last - first)};
  }
  static TIGON_DEVICE Slice slice(const RingRows<T>& rows, uint32_t row) {
    return slice_of<kWidth>(rows.data[0] + row * rows.stride[0], rows.columns, 0, 1);
  }
};

// The chunks that a warp requests, in order, of all rows of its block.
template <class T, class Layout>
class RingRequests {
  static constexpr int kInputs = Layout::kInputs, kChunk = Layout::kChunk;

 public:
  TIGON_DEVICE explicit RingRequests(const RingRows<T>& rows)
      : rows_(rows), next_row_(blockIdx.x) {}

  // Requests the next chunk to a slot, from lane 0's place in it on; nothing behind the last row.
  template <class RowPiece>
  TIGON_DEVICE void request(RowPiece* to, Mbarrier* full) {
    if (remaining_ <= 0) return;
    if (Layout::lane() == 0) {
      const unsigned bytes = static_cast<unsigned>(min(remaining_, kChunk)) * sizeof(RowPiece);
      mbarrier_arrive_expect(full, kInputs * bytes);
      TIGON_UNROLL
      for (int i = 0; i < kInputs; ++i) bulk_copy(to + i * kChunk, from_[i], bytes, full);
    }
    TIGON_UNROLL
    for (int i = 0; i < kInputs; ++i) from_[i] += kChunk * Layout::kWidth;
    remaining_ -= kChunk;
    if (remaining_ <= 0) begin_next_row();
  }
  TIGON_DEVICE void begin_next_row() {
    while (remaining_ <= 0 && next_row_ < rows_.rows) {
      const Slice s = Layout::slice(rows_, next_row_);
      const auto part = Layout::part_of(s);
      remaining_ = part.vectors;
      TIGON_UNROLL
      for (int i = 0; i < kInputs; ++i)
        from_[i] =
            rows_.data[i] + next_row_ * rows_.stride[i] + s.head + part.first * Layout::kWidth;
      next_row_ += gridDim.x;
    }
  }

 private:
  const RingRows<T> rows_;
  uint32_t next_row_;  // when the last chunk of this one has been requested
  const T* from_[kInputs] = {};
  int remaining_ = 0;
};

// All threads of the block call the same functions. For each row, in order: read(), then take().
template <class T, int kThreads, int kPieces, int kSlots>
class RowRing {
  using Layout = RingLayout<T, kThreads, kPieces, kSlots>;
  static constexpr int kInputs = Layout::kInputs, kChunk = Layout::kChunk, kSlot = Layout::kSlot;
  static constexpr int kWidth = Layout::kWidth;

 public:
  using RowPiece = Piece<T, kWidth>;
  static constexpr int kValues = kPieces * kWidth;  // of a lane in a slot
  static constexpr int kBarriers = Layout::kBarriers;

  // Requests the first chunks. slots: ring_bytes() of them.
  TIGON_DEVICE RowRing(const RingRows<T>& rows, RowPiece* slots, Mbarrier* full)
      : rows_(rows),
        slots_(slots),
        full_(full),
        lane_offset_(Layout::warp() * kSlots * kSlot + Layout::lane()),
        barrier_(Layout::warp() * kSlots),
        requests_(rows) {
    keep_computed(lane_offset_);
    keep_computed(barrier_);
    if (Layout::lane() == 0) {
      for (int s = 0; s < kSlots; ++s) mbarrier_init(full_ + barrier_ + s, 1);
      mbarrier_fence_init();
    }
    __syncwarp();
    requests_.begin_next_row();
    for (int s = 0; s < kSlots; ++s) request(s);
  }

  TIGON_DEVICE Slice slice(uint32_t row) const { return Layout::slice(rows_, row); }

  // Calls add(f, g) for the values of all pieces of the row: float[kValues] of each input, or fewer
  // at the row's end.
  template <class Add>
  TIGON_DEVICE void read(const Slice& s, const Add& add) const {
    int slot = slot_;
    unsigned parity = parity_;
    for (int remaining = Layout::part_of(s).vectors; remaining > 0; remaining -= kChunk) {
      mbarrier_wait(full_ + barrier_ + slot, parity);
      const RowPiece* const from = slots_ + lane_offset_ + slot * kSlot;
      if (remaining >= kChunk) {
        float f[kInputs][kValues];
        TIGON_UNROLL
        for (int i = 0; i < kInputs; ++i) {
          RowPiece pieces[kPieces];
          TIGON_UNROLL
          for (int p = 0; p < kPieces; ++p) pieces[p] = from[i * kChunk + p * 32];
          unpack_all(pieces, f[i]);
        }
        add(f[0], f[1]);
      } else {
        TIGON_UNROLL
        for (int p = 0; p < kPieces; ++p)
          if (Layout::lane() + p * 32 < remaining) {
            float f[kInputs][kWidth];
            TIGON_UNROLL
            for (int i = 0; i < kInputs; ++i) unpack_piece(from[i * kChunk + p * 32], f[i]);
            add(f[0], f[1]);
          }
      }
      advance(slot, parity);
    }
  }

  // Calls use(f, g) for all pieces of the row and writes what it leaves in f, float[kValues] of the
  // first input, to the row `to`. The row leaves the ring.
  template <class Use>
  TIGON_DEVICE void take(const Slice& s, T* to, const Use& use) {
    const auto part = Layout::part_of(s);
    to += s.head + (part.first + Layout::lane()) * kWidth;
    for (int remaining = part.vectors - Layout::lane(); remaining + Layout::lane() > 0;
         remaining -= kChunk) {
      const RowPiece* const from = slots_ + lane_offset_ + slot_ * kSlot;
      RowPiece taken[kInputs][kPieces] = {};
      TIGON_UNROLL
      for (int p = 0; p < kPieces; ++p)
        if (p * 32 < remaining) {
          TIGON_UNROLL
          for (int i = 0; i < kInputs; ++i) taken[i][p] = from[i * kChunk + p * 32];
        }
      bulk_fence();
      __syncwarp();
      request(slot_);
      float f[kInputs][kValues];
      TIGON_UNROLL
      for (int i = 0; i < kInputs; ++i) unpack_all(taken[i], f[i]);
      use(f[0], f[1]);
      TIGON_UNROLL
      for (int p = 0; p < kPieces; ++p)
        if (p * 32 < remaining) {
          float piece[kWidth];
          TIGON_UNROLL
          for (int j = 0; j < kWidth; ++j) piece[j] = f[0][p * kWidth + j];
          store_piece(to + p * 32 * kWidth, piece);
        }
      advance(slot_, parity_);
      to += kChunk * kWidth;
    }
  }

 private:
  static TIGON_DEVICE void unpack_all(const RowPiece (&pieces)[kPieces], float (&f)[kValues]) {
    TIGON_UNROLL
    for (int p = 0; p < kPieces; ++p) {
      float piece[kWidth];
      unpack_piece(pieces[p], piece);
      TIGON_UNROLL
      for (int j = 0; j < kWidth; ++j) f[p * kWidth + j] = piece[j];
    }
  }
  static TIGON_DEVICE void advance(int& slot, unsigned& parity) {
    if (++slot < kSlots) return;
    slot = 0;
    parity ^= 1;
  }

  TIGON_DEVICE void request(int slot) {
    requests_.request(slots_ + lane_offset_ + slot * kSlot, full_ + barrier_ + slot);
  }

  const RingRows<T> rows_;
  RowPiece* const slots_;
  Mbarrier* const full_;
  int lane_offset_, barrier_;  // the thread's in slot 0
  int slot_ = 0;               // of the oldest chunk
  unsigned parity_ = 0;
  RingRequests<T, Layout> requests_;
};

// Launches kernel(args); its blocks stay and take one row at a time.
template <class Kernel, class Args>
Status launch_ring(const LaunchShape& shape, int64_t rows, Stream stream, Kernel kernel,
                   const Args& args) {
  LaunchConfig config{.grid = dim3(1),
                      .block = dim3(static_cast<unsigned>(shape.lanes)),
                      .shared_bytes = ring_bytes(shape),
                      .stream = stream};
  const int64_t resident = resident_blocks(config, kernel);
  config.grid = dim3(static_cast<unsigned>(std::min(rows, resident)));
  return launch(config, kernel, args);
}

}  // namespace tigon
