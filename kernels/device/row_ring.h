// Wide rows on their way to a kernel whose clusters of blocks walk over them (sm_90): each warp has
// a ring of slots in shared memory, which bulk copies fill with its part of this row and of the
// next ones. A warp asks for the next chunk as soon as it has read a slot for the last time, and
// waits for no other warp: loads are always in flight, also during a row's reduction and stores.
// Inputs of one shape (y and dy of softmax backward) share the slots.
//
// A warp's part of a row is whole slots side by side, and parts differ by one slot at most: all
// warps wait for the last one at the row's reduction. Parts of equal numbers of vectors would leave
// the last slot of every warp mostly empty where a row is a little more than whole slots: at V =
// 50,257 that cost cross entropy a tenth of its speed on an H200. Parts that are strewn over the
// row cost softmax a twentieth at V = 262,144.
#pragma once
#include <algorithm>

#include "kernels/device/async.h"
#include "kernels/device/cluster_reduce.h"
#include "kernels/device/device_limits.h"
#include "kernels/device/pieces.h"
#include "kernels/device/row_slice.h"

namespace tigon {

// One block per multiprocessor, so that its whole shared memory holds few rows of few blocks: a
// block that is given twice the part of a row joins its threads' results half as often. On an H200
// as fast as 1,024 threads with two vectors each, or faster, at every row length.
constexpr LaunchShape ring_shape(int cluster) { return {512, 4, 1, 7, cluster}; }
constexpr bool is_ring(const LaunchShape& shape) { return shape.stages > 1; }
inline constexpr size_t kRingStaticShared = 3072;  // upper bound, beside the slots

// What a kernel asks of rows and of the device.
struct RingUse {
  int inputs = 1;
  int64_t least = 5120;  // vectors of a row; 4,000 are faster in registers
  int slots_ahead = 2;   // that a row must leave for the next one
};

constexpr size_t ring_bytes(const LaunchShape& shape, int inputs = 1) {
  return static_cast<size_t>(shape.lanes) * shape.pieces * shape.stages * inputs * 16;
}
// May rows of so many 16-byte vectors be walked over in this shape?
inline bool ring_holds(const LaunchShape& shape, int64_t vectors, const RingUse& use = {}) {
  const DeviceLimits limits = device_limits();
  const int64_t round = int64_t{shape.lanes} * shape.pieces * shape.cluster;
  return limits.clusters &&
         limits.shared_per_block >= ring_bytes(shape, use.inputs) + kRingStaticShared &&
         vectors >= use.least && vectors <= (shape.stages - use.slots_ahead) * round;
}

// Rows of all inputs start at the same place between two 16-byte boundaries.
template <class T, int kInputs>
struct RingRows {
  const T* data[kInputs];
  int64_t stride[kInputs];
  uint32_t rows;
  int columns;
};

// What of rows is wanted: `ask` starts to find it out, a row earlier.
struct EveryRow {
  TIGON_DEVICE int64_t ask(uint32_t) const { return 0; }
  TIGON_DEVICE bool wanted(int64_t) const { return true; }
};

// All threads of the block call the same functions. For each wanted row, in order: read(), then
// take().
template <class T, int kInputs, int kThreads, int kPieces, int kSlots, class Wanted>
class RowRing {
  static constexpr int kChunk = 32 * kPieces;     // vectors of an input in a slot
  static constexpr int kSlot = kInputs * kChunk;  // of all inputs
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kWidth = kVec<T>;

 public:
  using RowPiece = Piece<T, kWidth>;
  static constexpr int kValues = kPieces * kWidth;  // of a lane in a slot
  static constexpr int kBarriers = kWarps * kSlots;

  // Requests the first chunks. slots: ring_bytes() of them.
  TIGON_DEVICE RowRing(const RingRows<T, kInputs>& rows, const Wanted& wanted, RowPiece* slots,
                       Mbarrier* full)
      : rows_(rows),
        wanted_(wanted),
        slots_(slots),
        full_(full),
        place_(warp() * kSlots * kSlot + lane()),
        barrier_(warp() * kSlots),
        next_row_(first_row()) {
    keep_computed(place_);
    keep_computed(barrier_);
    if (lane() == 0) {
      for (int s = 0; s < kSlots; ++s) mbarrier_init(full_ + barrier_ + s, 1);
      mbarrier_fence_init();
    }
    __syncwarp();
    if (next_row_ < rows_.rows) next_answer_ = wanted_.ask(next_row_);
    begin_next_row();
    for (int s = 0; s < kSlots; ++s) request(s);
  }

  // Rows of this cluster.
  static TIGON_DEVICE uint32_t first_row() { return blockIdx.x >> __popc(cluster_size() - 1); }
  static TIGON_DEVICE uint32_t step() { return gridDim.x >> __popc(cluster_size() - 1); }
  TIGON_DEVICE Slice slice(uint32_t row) const {
    return slice_of<kWidth>(rows_.data[0] + row * rows_.stride[0], rows_.columns, cluster_rank(),
                            cluster_size());
  }

  // add(f) of the values of all pieces of the row: f is float[kValues] of each input, or less at
  // the row's end.
  template <class Add>
  TIGON_DEVICE void read(const Slice& s, const Add& add) const {
    int slot = slot_;
    unsigned parity = parity_;
    for (int left = part_of(s).vectors; left > 0; left -= kChunk) {
      if (!planted("row_ring.not_awaited")) mbarrier_wait(full_ + barrier_ + slot, parity);
      const RowPiece* const from = slots_ + place_ + slot * kSlot;
      if (left >= kChunk) {
        float f[kInputs][kValues];
        TIGON_UNROLL
        for (int i = 0; i < kInputs; ++i) {
          RowPiece pieces[kPieces];
          TIGON_UNROLL
          for (int p = 0; p < kPieces; ++p) pieces[p] = from[i * kChunk + p * 32];
          unpack_all(pieces, f[i]);
        }
        call(add, f);
      } else {
        TIGON_UNROLL
        for (int p = 0; p < kPieces; ++p)
          if (lane() + p * 32 < left) {
            float f[kInputs][kWidth];
            TIGON_UNROLL
            for (int i = 0; i < kInputs; ++i) unpack_piece(from[i * kChunk + p * 32], f[i]);
            call(add, f);
          }
      }
      advance(slot, parity);
    }
  }

  // use(f, column) of all pieces of the row, which leaves the ring: what f of the first input has
  // become is written to the row `to`. f is float[kValues] of each input; element j is of the
  // column column + column_of(j).
  template <class Use>
  TIGON_DEVICE void take(const Slice& s, T* to, const Use& use) {
    const Part part = part_of(s);
    int column = s.head + (part.first + lane()) * kWidth;
    to += column;
    for (int left = part.vectors - lane(); left + lane() > 0; left -= kChunk) {
      if (planted("row_ring.requested_early")) request(slot_);
      const RowPiece* const from = slots_ + place_ + slot_ * kSlot;
      RowPiece kept[kInputs][kPieces] = {};
      TIGON_UNROLL
      for (int p = 0; p < kPieces; ++p)
        if (p * 32 < left) {
          TIGON_UNROLL
          for (int i = 0; i < kInputs; ++i) kept[i][p] = from[i * kChunk + p * 32];
        }
      bulk_fence();
      __syncwarp();
      if (!planted("row_ring.requested_early")) request(slot_);
      float f[kInputs][kValues];
      TIGON_UNROLL
      for (int i = 0; i < kInputs; ++i) unpack_all(kept[i], f[i]);
      call(use, f, column);
      TIGON_UNROLL
      for (int p = 0; p < kPieces; ++p)
        if (p * 32 < left) {
          float piece[kWidth];
          TIGON_UNROLL
          for (int j = 0; j < kWidth; ++j) piece[j] = f[0][p * kWidth + j];
          store_piece(to + p * 32 * kWidth, piece);
        }
      advance(slot_, parity_);
      column += kChunk * kWidth;
      to += kChunk * kWidth;
    }
  }
  static TIGON_DEVICE int column_of(int j) { return j / kWidth * 32 * kWidth + j % kWidth; }
  static constexpr int kColumns = kChunk * kWidth;  // of all lanes, from lane 0's `column` on

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
  // With the values of each input as an argument of its own.
  template <class F, int kCount, class... Rest>
  static TIGON_DEVICE void call(const F& function, float (&f)[kInputs][kCount], Rest... rest) {
    static_assert(kInputs <= 2);
    if constexpr (kInputs == 1)
      function(f[0], rest...);
    else
      function(f[0], f[1], rest...);
  }
  static TIGON_DEVICE int warp() { return static_cast<int>(threadIdx.x / 32); }
  static TIGON_DEVICE int lane() { return static_cast<int>(threadIdx.x % 32); }
  // The warp's vectors of a slice.
  struct Part {
    int first, vectors;  // none: 0 or less
  };
  static TIGON_DEVICE Part part_of(const Slice& s) {
    const int chunks = (s.last - s.first + kChunk - 1) / kChunk;
    const int each = chunks / kWarps, more = chunks % kWarps;  // the first warps have one more
    const int first = s.first + (warp() * each + min(warp(), more)) * kChunk;
    return {first, min((each + (warp() < more)) * kChunk, s.last - first)};
  }
  static TIGON_DEVICE void advance(int& slot, unsigned& parity) {
    if (++slot < kSlots) return;
    slot = 0;
    parity ^= 1;
  }

  // The warp's next chunk; nothing behind the last row.
  TIGON_DEVICE void request(int slot) {
    if (request_left_ <= 0) return;
    if (lane() == 0) {
      const unsigned bytes = static_cast<unsigned>(min(request_left_, kChunk)) * sizeof(RowPiece);
      Mbarrier* const full = full_ + barrier_ + slot;
      mbarrier_arrive_expect(full, kInputs * bytes);
      TIGON_UNROLL
      for (int i = 0; i < kInputs; ++i)  // to lane 0's place
        bulk_copy(slots_ + place_ + slot * kSlot + i * kChunk, request_from_[i], bytes, full);
    }
    TIGON_UNROLL
    for (int i = 0; i < kInputs; ++i) request_from_[i] += kChunk * kWidth;
    request_left_ -= kChunk;
    if (request_left_ <= 0) begin_next_row();
  }
  TIGON_DEVICE void begin_next_row() {
    while (request_left_ <= 0 && next_row_ < rows_.rows) {
      const uint32_t row = next_row_;
      const bool wanted = wanted_.wanted(next_answer_);
      next_row_ += step();
      if (next_row_ < rows_.rows) next_answer_ = wanted_.ask(next_row_);
      if (!wanted) continue;
      const Slice s = slice(row);
      const Part part = part_of(s);
      request_left_ = part.vectors;
      TIGON_UNROLL
      for (int i = 0; i < kInputs; ++i)
        request_from_[i] = rows_.data[i] + row * rows_.stride[i] + s.head + part.first * kWidth;
    }
  }

  const RingRows<T, kInputs> rows_;
  const Wanted wanted_;
  RowPiece* const slots_;
  Mbarrier* const full_;
  int place_, barrier_;  // the thread's in slot 0
  int slot_ = 0;         // of the oldest chunk
  unsigned parity_ = 0;
  uint32_t next_row_;  // to request when this one's last chunk has been
  int64_t next_answer_ = 0;
  const T* request_from_[kInputs] = {};
  int request_left_ = 0;
};

// Launches kernel(args) over rows, of which a cluster takes one at a time.
template <class Kernel, class Args>
Status launch_ring(const LaunchShape& shape, int inputs, int64_t rows, Stream stream, Kernel kernel,
                   const Args& args) {
  const auto cluster = static_cast<unsigned>(shape.cluster);
  LaunchConfig config{.grid = dim3(cluster),
                      .block = dim3(static_cast<unsigned>(shape.lanes)),
                      .shared_bytes = ring_bytes(shape, inputs),
                      .stream = stream,
                      .cluster = cluster};
  const int64_t resident = resident_blocks(config, kernel);
  config.grid = dim3(static_cast<unsigned>(std::min(rows * shape.cluster, resident)));
  return launch(config, kernel, args);
}

}  // namespace tigon
