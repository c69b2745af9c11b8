// SPDX-License-Identifier: Apache-2.0
// How kernels that work on whole rows lay a row over threads: lanes of a warp or a block per row,
// each of which has some pieces in registers.
#pragma once
#include <algorithm>

#include "kernels/device/device.h"
#include "kernels/device/device_limits.h"
#include "kernels/device/launch_table.h"
#include "kernels/device/pieces.h"

namespace tigon {

// The shapes of one kernel, smallest rows first. Shapes for `tigon tune` only stand behind one that
// holds as long a row.
template <size_t kCount>
using RowTable = ShapeTable<kCount>;

// A power of two: so many lanes share a row. Another number, more than a warp, is the largest
// block: a block is fitted to its row and has as few warps as hold it, so that no width leaves more
// than part of a warp without work.
TIGON_HOST_DEVICE constexpr bool is_fitted(int lanes) { return (lanes & (lanes - 1)) != 0; }

// Threads of a block; where blocks are fitted, of the largest.
constexpr int row_threads(int lanes) { return lanes < 128 && !is_fitted(lanes) ? 128 : lanes; }
template <int kLanes>
inline constexpr int kRowThreads = row_threads(kLanes);
template <int kLanes>
inline constexpr int kRowsPerBlock = kRowThreads<kLanes> / kLanes;

// The blocks that rows of some length are launched in.
struct RowBlock {
  int threads;
  int rows;
  int per_sm;  // that fit on a multiprocessor at once
};
// The block of rows that are `pieces` pieces long. A block of fewer warps needs fewer registers, so
// that more of them run on a multiprocessor.
constexpr RowBlock row_block(const LaunchShape& shape, int64_t pieces) {
  constexpr int kMaxPerSm = 16;  // of the least device
  const int most = row_threads(shape.lanes);
  if (!is_fitted(shape.lanes)) return {most, most / shape.lanes, shape.blocks_per_sm};
  const int64_t lanes = (pieces + shape.vectors - 1) / shape.vectors;
  const int threads = static_cast<int>(std::clamp<int64_t>((lanes + 31) / 32 * 32, 64, most));
  return {threads, 1, std::min(most * shape.blocks_per_sm / threads, kMaxPerSm)};
}

// The kernel of a table's last shape takes rows of any length: it reads twice what registers cannot
// hold.
template <const auto& kTable>
constexpr bool takes_long_rows(const LaunchShape& shape) {
  LaunchShape last = kTable.shapes[std::size(kTable.shapes) - 1];
  last.cluster = shape.cluster;
  return shape == last;
}
// A row of `pieces` pieces stays in registers.
constexpr bool holds(const LaunchShape& shape, int64_t pieces) {
  return pieces <= int64_t{shape.lanes} * shape.vectors * shape.cluster;
}

// The device has the shared memory that a launch asks for.
template <const auto& kTable>
bool has_shared_memory_for(const LaunchShape& shape) {
  return kTable.shared_bytes(shape) <= device_limits().shared_per_block;
}

// Index of the shape for a row of `pieces` pieces: the first with `cluster` blocks that holds it
// and that the device has the memory for, or what has been measured to be faster here.
template <const auto& kTable>
size_t row_shape(int64_t pieces, int cluster = 1) {
  const LaunchShape* const shapes = kTable.shapes;
  size_t usual = 0;
  while (usual + 1 < std::size(kTable.shapes) &&
         (shapes[usual].cluster != cluster || !holds(shapes[usual], pieces) ||
          !has_shared_memory_for<kTable>(shapes[usual])))
    ++usual;
  return chosen_shape<kTable>(pieces, usual, [&](size_t i) {
    return (holds(shapes[i], pieces) || takes_long_rows<kTable>(shapes[i])) &&
           has_clusters_for(shapes[i]) && has_shared_memory_for<kTable>(shapes[i]);
  });
}

// Which pieces of a row a thread has on chip: kPieces of them from the first on, kPieceStride
// apart. Those of a fitted block's warp lie side by side, so that addresses do not depend on how
// many warps the block has.
template <int kLanes>
inline constexpr int kPieceStride = is_fitted(kLanes) ? 32 : kLanes;
template <int kLanes, int kPieces>
TIGON_DEVICE int first_piece_of_warp() {
  if constexpr (is_fitted(kLanes)) return static_cast<int>(threadIdx.x / 32 * (32 * kPieces));
  return kLanes > 32 ? static_cast<int>(threadIdx.x) % kLanes / 32 * 32 : 0;
}
// Kernels that walk over rows ask for it only where blocks are fitted: a call, inlined or not,
// makes the compiler order the rest of them otherwise.
template <int kLanes, int kPieces>
TIGON_DEVICE int first_piece() {
  if constexpr (is_fitted(kLanes))
    return first_piece_of_warp<kLanes, kPieces>() + static_cast<int>(threadIdx.x % 32);
  return threadIdx.x % kLanes;
}

// Returns run.operator()<shape, whether it takes longer rows>() of shape `index`.
template <const auto& kTable, class Run>
auto run_row_shape(size_t index, const Run& run) {
  return with_shape<kTable>(index, [&]<LaunchShape kShape> {
    static_assert(!is_fitted(kShape.lanes) ||
                  (kShape.lanes % 32 == 0 && !takes_long_rows<kTable>(kShape)));
    return run.template operator()<kShape, takes_long_rows<kTable>(kShape)>();
  });
}
template <const auto& kTable, class Run>
auto with_row_shape(int64_t pieces, const Run& run) {
  return run_row_shape<kTable>(row_shape<kTable>(pieces), run);
}

// Returns join.operator()<lanes>(value): lane w of a group has the value of warp w in `warps`, or
// T{} where a fitted block has no such warp. The group is as small as the block's warps allow, at
// most kWarps: few warps take fewer shuffles.
template <int kWarps, int kGroup = 2, class T, class Join>
TIGON_DEVICE auto join_fitted(const T* warps, const Join& join) {
  const auto count = static_cast<int>(blockDim.x / 32);
  if constexpr (kGroup < kWarps)
    if (count > kGroup) return join_fitted<kWarps, 2 * kGroup>(warps, join);
  const int w = threadIdx.x % kGroup;
  return join.template operator()<kGroup>(w < count ? warps[w] : T{});
}

// `parity` is 0, 1, 0, 1, ... from sum to sum of a kernel.
template <int kLanes, class T>
TIGON_DEVICE T row_sum(T v, int parity) {
  if constexpr (is_fitted(kLanes)) {
    constexpr int kWarps = kLanes / 32;
    TIGON_SHARED(T, sums, [2][kWarps]);
    T* const warps = sums[parity];
    v = warp_reduce(v, Sum{});
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    return join_fitted<kWarps, 8>(
        warps, [&]<int kGroup>(T part) { return warp_reduce<kGroup>(part, Sum{}); });
  } else if constexpr (kLanes <= 32) {
    return warp_reduce<kLanes>(v, Sum{});
  } else {
    return block_reduce_alternating<kLanes, kRowsPerBlock<kLanes>>(v, Sum{}, parity);
  }
}

// row_sum() in two steps, for a kernel that has something else to do while the warps' sums are on
// their way; the same bits. Through one barrier, in collect().
template <int kLanes, class T>
class SteppedRowSum {
  static_assert(kLanes > 32 && kLanes == kRowThreads<kLanes> && !is_fitted(kLanes));
  static constexpr int kWarps = kLanes / 32;

 public:
  // sums: shared.
  TIGON_DEVICE explicit SteppedRowSum(T (*sums)[kWarps]) : sums_(sums) {}
  TIGON_DEVICE void post(T v, int parity) {
    v = warp_reduce(v, Sum{});
    if (threadIdx.x % 32 == 0) sums_[parity][threadIdx.x / 32] = v;
  }
  TIGON_DEVICE T collect(int parity) const {
    __syncthreads();
    return warp_reduce<kWarps>(sums_[parity][threadIdx.x % kWarps], Sum{});
  }

 private:
  T (*sums_)[kWarps];
};

// A thread keeps one sum per element of a piece: eight short chains instead of a long one.
template <int kWidth>
TIGON_DEVICE void add_products(const float (&a)[kWidth], const float (&b)[kWidth],
                               float (&sums)[kWidth]) {
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) sums[j] += a[j] * b[j];
}
template <int kWidth>
TIGON_DEVICE float sum_of(const float (&f)[kWidth]) {
  float sum = f[0];
  TIGON_UNROLL
  for (int j = 1; j < kWidth; ++j) sum += f[j];
  return sum;
}

// Piece i of p [columns]; zero where there is no tensor.
template <int kWidth, class T>
TIGON_DEVICE Piece<std::remove_const_t<T>, kWidth> load_if_given(const T* p, int64_t i) {
  if (p == nullptr) return {};
  return load_piece<kWidth>(p + i * kWidth);
}
// The pieces of p [columns] that the thread has on chip, from piece `first` on.
template <int kWidth, int kLanes, int kPieces, class T>
TIGON_DEVICE void load_lane_pieces(const T* p, int64_t columns, int first,
                                   Piece<std::remove_const_t<T>, kWidth> (&to)[kPieces]) {
  TIGON_UNROLL
  for (int k = 0; k < kPieces; ++k)
    if (const int i = k * kPieceStride<kLanes> + first; i < columns / kWidth)
      to[k] = load_if_given<kWidth>(p, i);
}

// f(p) of each piece that the thread has on chip: its p-th if p * kPieceStride < mine.
template <int kLanes, int kPieces, class F>
TIGON_DEVICE void for_lane_pieces(int mine, const F& f) {
  TIGON_UNROLL
  for (int p = 0; p < kPieces; ++p)
    if (p * kPieceStride<kLanes> < mine) f(p);
}
// Piece i of p [columns]; `otherwise` in every element where there is no tensor.
template <int kWidth, class T>
TIGON_DEVICE Piece<std::remove_const_t<T>, kWidth> load_piece_or(const T* p, float otherwise,
                                                                 int64_t i) {
  if (p != nullptr) return load_piece<kWidth>(p + i * kWidth);
  float f[kWidth];
  for (float& v : f) v = otherwise;
  return pack_piece<std::remove_const_t<T>>(f);
}
// The pieces of p [columns] that the thread has on chip, from piece `first` on, as above.
template <int kWidth, int kLanes, int kPieces, class T>
TIGON_DEVICE void load_pieces_or(const T* p, float otherwise, int first, int mine,
                                 Piece<std::remove_const_t<T>, kWidth> (&to)[kPieces]) {
  if (p != nullptr) {
    p += first * kWidth;
    for_lane_pieces<kLanes, kPieces>(
        mine, [&](int k) { to[k] = load_piece<kWidth>(p + k * kPieceStride<kLanes> * kWidth); });
  } else {
    TIGON_UNROLL
    for (int k = 0; k < kPieces; ++k) to[k] = load_piece_or<kWidth, T>(nullptr, otherwise, 0);
  }
}

}  // namespace tigon
