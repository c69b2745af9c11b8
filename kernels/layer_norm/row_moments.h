// SPDX-License-Identifier: Apache-2.0
// Mean and standard deviation of a row that several warps share. Each warp sums about a centre of
// its own; one barrier later all of them join these parts.
#pragma once
#include "kernels/device/row_lanes.h"

namespace tigon::layer_norm {

// Sums of x - centre and of its square.
struct Moments {
  float first, second;
  TIGON_DEVICE Moments operator+(const Moments& o) const {
    return {first + o.first, second + o.second};
  }
};

// A part of a row: its elements and their moments about a centre near their mean, 0 of none.
struct RowPart {
  float count, centre;
  Moments moments;
};

// Elements of a row of `pieces` pieces that the warp of this thread has.
template <int kWidth, int kLanes, int kPieces, class Count>
TIGON_DEVICE float warp_elements(Count pieces) {
  if constexpr (is_fitted(kLanes)) {
    constexpr int kMost = 32 * kPieces;
    const Count count = pieces - first_piece_of_warp<kLanes, kPieces>();
    return static_cast<float>((count < 0 ? 0 : count > kMost ? kMost : count) * kWidth);
  }
  const int before = static_cast<int>(threadIdx.x) % kLanes / 32 * 32;
  const int more = static_cast<int>(pieces % kLanes) - before;
  const Count count = pieces / kLanes * 32 + (more < 0 ? 0 : more > 32 ? 32 : more);
  return static_cast<float>(count * kWidth);
}

// The row from the parts of a group of so many lanes.
template <int kGroup>
TIGON_DEVICE RowPart join_lanes(RowPart p, float h) {
  const float centre = fast_div(warp_reduce<kGroup>(p.count * p.centre, Sum{}), h);
  float off = p.count > 0.0f ? p.centre - centre : 0.0f;
  const Moments about_centre = {p.moments.first + p.count * off,
                                p.moments.second + off * (2.0f * p.moments.first + p.count * off)};
  return {h, centre, warp_reduce<kGroup>(about_centre, Sum{})};
}

// The row of a block from the parts of its warps, which have the same one in every lane. Every
// thread gets the same bits.
template <int kLanes>
TIGON_DEVICE RowPart join_parts(const RowPart& part, float h) {
  constexpr int kWarps = kLanes / 32;
  static_assert(kWarps > 1);
  TIGON_SHARED(RowPart, parts, [kRowsPerBlock<kLanes>][kWarps]);
  const int group = static_cast<int>(threadIdx.x) / kLanes;
  if (threadIdx.x % 32 == 0) parts[group][threadIdx.x % kLanes / 32] = part;
  __syncthreads();
  // Every warp joins them, a lane for each.
  if constexpr (is_fitted(kLanes))
    return join_fitted<kWarps>(parts[0],
                               [&]<int kGroup>(RowPart p) { return join_lanes<kGroup>(p, h); });
  else
    return join_lanes<kWarps>(parts[group][threadIdx.x % kWarps], h);
}

}  // namespace tigon::layer_norm
