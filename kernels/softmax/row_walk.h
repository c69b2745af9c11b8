// SPDX-License-Identifier: Apache-2.0
// How both passes of softmax walk over rows. A warp, a block or a cluster of blocks works on a row
// and stays for further ones. While a row is in registers, as stored, the next one is in flight to
// shared memory, also during the row's reduction and stores. Each thread copies for itself: the
// reduction has the only barrier. What registers cannot hold of a row is read again, mostly from
// L2.
#pragma once
#include "kernels/device/row_lanes.h"
#include "kernels/device/row_slice.h"
#include "kernels/softmax/cluster_reduce.h"

namespace tigon::softmax {

// A lane's share of a row: every kLanes-th piece of the slice from `column` on, and maybe one of
// the elements before and after the pieces.
struct LanePart {
  int column;
  int remaining;  // pieces from `column` on: the lane has piece p if p * kLanes < remaining
  int end;        // column, -1: none
};

template <int kWidth, int kLanes>
struct RowWalk {
  uint32_t row, step, rows;
  int columns, lane;

  TIGON_DEVICE RowWalk(int64_t rows_, int64_t columns_)
      : rows(static_cast<uint32_t>(rows_)),
        columns(static_cast<int>(columns_)),
        lane(threadIdx.x % kLanes) {
    constexpr uint32_t kRows = kRowsPerBlock<kLanes>;
    row = blockIdx.x / cluster_size() * kRows + threadIdx.x / kLanes;
    step = gridDim.x / cluster_size() * kRows;
    if constexpr (kLanes > 32) cluster_begin();
  }
  // Of the row that starts at `start`; of no row when there are no more.
  template <class T>
  TIGON_DEVICE LanePart part(const T* start) const {
    LanePart part = {0, 0, -1};
    if (row >= rows) return part;
    const unsigned rank = cluster_rank();
    const Slice s = slice_of<kWidth>(start, columns, rank, cluster_size());
    part.column = s.head + (s.first + lane) * kWidth;
    part.remaining = s.last - s.first - lane;
    if constexpr (kWidth > 1)
      for_each_end<kLanes>(s, columns, rank, lane, [&](int column) { part.end = column; });
    return part;
  }
  // Of all lanes that share the row.
  template <class T, class Op>
  TIGON_DEVICE T reduce(T v, Op op, int parity) const {
    if constexpr (kLanes <= 32) {
      return warp_reduce<kLanes>(v, op);
    } else {
      using Scratch = ClusterScratch<T, kLanes>;
      TIGON_SHARED(Scratch, scratch, [1]);
      return cluster_reduce<kLanes>(v, op, scratch[0], parity);
    }
  }
};

// Rows of one tensor: the pieces of this row that a thread has in registers, and those of the next
// that are on their way to its slots, one every kRowThreads. Single elements are loaded when they
// are needed.
template <class T, int kWidth, int kLanes, int kPieces>
struct RowBuffer {
  static constexpr int kPitch = kRowThreads<kLanes>;
  static_assert(kLanes >= 2 * kVec<T>);  // a lane has at most one end

  Vec<T>* slots;
  Piece<T, kWidth> resident[kPieces];
  T end, next_end;

  TIGON_DEVICE explicit RowBuffer(Vec<T>* all) : slots(all + threadIdx.x) {}

  TIGON_DEVICE void request(int p, const T* row, const LanePart& part) const {
    if constexpr (kWidth > 1)
      if (p * kLanes < part.remaining)
        async_copy<16>(slots + p * kPitch, row + part.column + p * kLanes * kWidth);
  }
  // Of a row whose piece p has landed.
  TIGON_DEVICE void receive(int p, const T* row, const LanePart& part) {
    if (p * kLanes >= part.remaining) return;
    if constexpr (kWidth > 1)
      resident[p] = dtype_detail::bits_as<Piece<T, kWidth>>(slots[p * kPitch]);
    else
      resident[p] = load_piece<1>(row + part.column + p * kLanes);
  }
};

// Makes the requests since the last call a group, and waits for the oldest of kPieces groups.
template <int kWidth>
TIGON_DEVICE void close_request() {
  if constexpr (kWidth > 1) async_commit();
}
template <int kWidth, int kPieces>
TIGON_DEVICE void await_request() {
  if constexpr (kWidth > 1) async_wait<kPieces - 1>();
}

// A tensor in a walk: its buffer, its row, and the row after that.
template <class T, int kWidth, int kLanes, int kPieces>
struct RowSource {
  RowBuffer<T, kWidth, kLanes, kPieces>& buffer;
  const T *row, *next_row;  // [V]
};

// Requests the first row of each source, at `next_row`.
template <class T, int kWidth, int kLanes, int kPieces, class... Sources>
TIGON_DEVICE void request_first(const LanePart& part,
                                const RowSource<T, kWidth, kLanes, kPieces>& a,
                                const Sources&... more) {
  TIGON_UNROLL
  for (int p = 0; p < kPieces; ++p) {
    a.buffer.request(p, a.next_row, part);
    (more.buffer.request(p, more.next_row, part), ...);
    close_request<kWidth>();
  }
}

// f(a piece of each source) for all pieces of a row that the thread has. Those that arrive come
// first, and the next row's are requested to their slots. In long rows those that registers cannot
// hold follow.
template <bool kLongRows, class F, class T, int kWidth, int kLanes, int kPieces, class... Sources>
TIGON_DEVICE void receive_row(const LanePart& part, const LanePart& next, const F& f,
                              const RowSource<T, kWidth, kLanes, kPieces>& a,
                              const Sources&... more) {
  TIGON_UNROLL
  for (int p = 0; p < kPieces; ++p) {
    await_request<kWidth, kPieces>();
    a.buffer.receive(p, a.row, part);
    (more.buffer.receive(p, more.row, part), ...);
    a.buffer.request(p, a.next_row, next);
    (more.buffer.request(p, more.next_row, next), ...);
    close_request<kWidth>();
    if (p * kLanes < part.remaining) f(a.buffer.resident[p], more.buffer.resident[p]...);
  }
  for (int i = kPieces * kLanes; kLongRows && i < part.remaining; i += kLanes)
    f(load_piece<kWidth>(a.row + part.column + i * kWidth),
      load_piece<kWidth>(more.row + part.column + i * kWidth)...);
}

// f(piece number, a piece of each source) for the same pieces, a second time.
template <bool kLongRows, class F, class T, int kWidth, int kLanes, int kPieces, class... Sources>
TIGON_DEVICE void for_each_piece(const LanePart& part, const F& f,
                                 const RowSource<T, kWidth, kLanes, kPieces>& a,
                                 const Sources&... more) {
  TIGON_UNROLL
  for (int p = 0; p < kPieces; ++p)
    if (p * kLanes < part.remaining) {
      keep_packed(a.buffer.resident[p]);
      (keep_packed(more.buffer.resident[p]), ...);
      f(p * kLanes, a.buffer.resident[p], more.buffer.resident[p]...);
    }
  for (int i = kPieces * kLanes; kLongRows && i < part.remaining; i += kLanes)
    f(i, load_piece<kWidth>(a.row + part.column + i * kWidth),
      load_piece<kWidth>(more.row + part.column + i * kWidth)...);
}

}  // namespace tigon::softmax
