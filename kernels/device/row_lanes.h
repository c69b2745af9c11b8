// How kernels that work on whole rows lay a row over threads: lanes of a warp or a block per row,
// each of which keeps some pieces in registers.
#pragma once
#include <iterator>

#include "kernels/device/device.h"
#include "kernels/device/launch_table.h"
#include "kernels/device/pieces.h"

namespace tigon {

// `lanes` threads keep `pieces` pieces of the row each. Up to 32 lanes need no barrier, and 128
// threads share a block; more lanes are a block. The first shape of a table that holds the row is
// taken; what even the last one cannot hold is read twice. A piece is 16 bytes, or one element
// where rows are not aligned.
struct RowShape {
  int lanes, pieces;
  int blocks_per_sm;  // that the registers must let run at once
};
// The shapes of one kernel, smallest rows first, under the name that a launch table knows.
template <size_t kCount>
struct RowTable {
  const char* name;
  RowShape shapes[kCount];
};
template <int kLanes>
inline constexpr int kRowThreads = kLanes < 128 ? 128 : kLanes;
template <int kLanes>
inline constexpr int kRowsPerBlock = kRowThreads<kLanes> / kLanes;

// Returns run.operator()<lanes, pieces, blocks per SM, is last>() of shape `index` of the table.
template <const auto& kTable, size_t kIndex = 0, class Run>
auto run_row_shape(size_t index, const Run& run) {
  constexpr RowShape kShape = kTable.shapes[kIndex];
  constexpr bool kLast = kIndex + 1 == std::size(kTable.shapes);
  if constexpr (!kLast)
    if (index > kIndex) return run_row_shape<kTable, kIndex + 1>(index, run);
  return run.template operator()<kShape.lanes, kShape.pieces, kShape.blocks_per_sm, kLast>();
}

// The same of the shape for a row of `pieces` pieces: the first that holds it, or what has been
// measured to be faster here.
template <const auto& kTable, class Run>
auto with_row_shape(int64_t pieces, const Run& run) {
  constexpr size_t kCount = std::size(kTable.shapes);
  size_t first = 0;
  while (first + 1 < kCount &&
         pieces > int64_t{kTable.shapes[first].lanes} * kTable.shapes[first].pieces)
    ++first;
  return run_row_shape<kTable>(launch_table().shape(kTable.name, pieces, first, kCount), run);
}

template <int kLanes, class T>
TIGON_DEVICE T row_sum(T v) {
  if constexpr (kLanes <= 32)
    return warp_reduce<kLanes>(v, Sum{});
  else
    return block_sum<kLanes>(v);
}

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
// All pieces of p [columns] that belong to this lane.
template <int kWidth, int kLanes, int kPieces, class T>
TIGON_DEVICE void load_lane_pieces(const T* p, int64_t columns, int lane,
                                   Piece<std::remove_const_t<T>, kWidth> (&kept)[kPieces]) {
  TIGON_UNROLL
  for (int k = 0; k < kPieces; ++k)
    if (const int i = k * kLanes + lane; i < columns / kWidth)
      kept[k] = load_if_given<kWidth>(p, i);
}

}  // namespace tigon
