// SPDX-License-Identifier: Apache-2.0
// Kernels that walk over rows: a thread's rows, and its pieces of each.
#pragma once
#include <type_traits>

#include "kernels/device/row_lanes.h"

namespace tigon::norm {

// The rows of a thread's group of lanes, and the thread's pieces of each.
template <int kWidth, int kLanes, int kPieces, bool kFromRowStart>
struct LaneShare {
  static constexpr int kResident = kLanes * kPieces;  // pieces of a row that stay on chip
  // Pieces from the row's start on, or from the thread's first piece on.
  using Count = std::conditional_t<kFromRowStart, int64_t, int>;

  int piece;                // the thread's first
  int64_t rows, h, pieces;  // of a row
  int64_t step, first;      // rows of all groups; the block's first row
  int resident;

  TIGON_DEVICE LaneShare(int64_t rows_, int64_t h_)
      : piece(is_fitted(kLanes) ? first_piece<kLanes, kPieces>() : threadIdx.x % kLanes),
        rows(rows_),
        h(h_),
        pieces(h_ / kWidth),
        step(int64_t{gridDim.x} * kRowsPerBlock<kLanes>),
        first(int64_t{blockIdx.x} * kRowsPerBlock<kLanes>),
        resident(static_cast<int>(pieces < kResident ? pieces : kResident) - piece) {}

  // What for_each() takes for this row: nothing beyond the last one.
  TIGON_DEVICE Count count(int64_t row) const {
    if constexpr (kFromRowStart)
      return row < rows ? pieces : 0;
    else
      return row < rows ? resident : 0;
  }
  // f(p) of the thread's pieces that stay on chip.
  template <class F>
  TIGON_DEVICE void for_each(Count count, const F& f) const {
    if constexpr (kFromRowStart) {
      TIGON_UNROLL
      for (int p = 0; p < kPieces; ++p)
        if (p * kPieceStride<kLanes> + piece < count) f(p);
    } else {
      for_lane_pieces<kLanes, kPieces>(count, f);
    }
  }
  // f(i) of the thread's other pieces.
  template <class F>
  TIGON_DEVICE void for_tail(int64_t row, const F& f) const {
    const int64_t end = row < rows ? pieces : 0;
    for (int64_t i = kResident + piece; i < end; i += kLanes) f(i);
  }
};

}  // namespace tigon::norm
