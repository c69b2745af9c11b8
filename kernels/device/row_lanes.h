// SPDX-License-Identifier: Apache-2.0
// How kernels that work on whole rows lay a row over threads: lanes of a warp or a block per row,
// each of which has some pieces in registers.
#pragma once
#include "kernels/device/device.h"
#include "kernels/device/device_limits.h"
#include "kernels/device/launch_table.h"
#include "kernels/device/pieces.h"

namespace tigon {

// The shapes of one kernel, smallest rows first. Shapes for `tigon tune` only stand behind one that
// holds as long a row.
template <size_t kCount>
using RowTable = ShapeTable<kCount>;

template <int kLanes>
inline constexpr int kRowThreads = kLanes < 128 ? 128 : kLanes;
template <int kLanes>
inline constexpr int kRowsPerBlock = kRowThreads<kLanes> / kLanes;

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
// Returns run.operator()<shape, whether it takes longer rows>() of shape `index`.
template <const auto& kTable, class Run>
auto run_row_shape(size_t index, const Run& run) {
  return with_shape<kTable>(index, [&]<LaunchShape kShape> {
    return run.template operator()<kShape, takes_long_rows<kTable>(kShape)>();
  });
}
template <const auto& kTable, class Run>
auto with_row_shape(int64_t pieces, const Run& run) {
  return run_row_shape<kTable>(row_shape<kTable>(pieces), run);
}

// `parity` is 0, 1, 0, 1, ... from sum to sum of a kernel.
template <int kLanes, class T>
TIGON_DEVICE T row_sum(T v, int parity) {
  if constexpr (kLanes <= 32)
    return warp_reduce<kLanes>(v, Sum{});
  else
    return block_reduce_alternating<kLanes>(v, Sum{}, parity);
}

// row_sum() in two steps, for a kernel that has something else to do while the warps' sums are on
// their way; the same bits. Through one barrier, in collect().
template <int kLanes, class T>
class SteppedRowSum {
  static_assert(kLanes > 32 && kLanes == kRowThreads<kLanes>);
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
// All pieces of p [columns] that belong to this lane.
template <int kWidth, int kLanes, int kPieces, class T>
TIGON_DEVICE void load_lane_pieces(const T* p, int64_t columns, int lane,
                                   Piece<std::remove_const_t<T>, kWidth> (&to)[kPieces]) {
  TIGON_UNROLL
  for (int k = 0; k < kPieces; ++k)
    if (const int i = k * kLanes + lane; i < columns / kWidth) to[k] = load_if_given<kWidth>(p, i);
}

// f(p) of each piece that the thread has in registers: its p-th if p * kLanes < mine.
template <int kLanes, int kPieces, class F>
TIGON_DEVICE void for_lane_pieces(int mine, const F& f) {
  TIGON_UNROLL
  for (int p = 0; p < kPieces; ++p)
    if (p * kLanes < mine) f(p);
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
// The pieces of p [columns] that this lane has in registers, as above.
template <int kWidth, int kLanes, int kPieces, class T>
TIGON_DEVICE void load_pieces_or(const T* p, float otherwise, int lane, int mine,
                                 Piece<std::remove_const_t<T>, kWidth> (&to)[kPieces]) {
  if (p != nullptr) {
    p += lane * kWidth;
    for_lane_pieces<kLanes, kPieces>(
        mine, [&](int k) { to[k] = load_piece<kWidth>(p + k * kLanes * kWidth); });
  } else {
    TIGON_UNROLL
    for (int k = 0; k < kPieces; ++k) to[k] = load_piece_or<kWidth, T>(nullptr, otherwise, 0);
  }
}

}  // namespace tigon
