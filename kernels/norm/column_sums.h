// SPDX-License-Identifier: Apache-2.0
// Sums over rows, as weight gradients need them, without atomics: each thread sums its columns in
// registers, every block of a fixed grid writes one row of partial sums, and a second kernel adds
// those in a fixed order. The same bits every time on devices with as many multiprocessors.
#pragma once
#include <algorithm>

#include "kernels/device/launch.h"
#include "kernels/device/row_lanes.h"

namespace tigon {

// Rows of a group of lanes. With fewer, the partial sums would be most of the traffic. But fewer
// are better than a device with idle multiprocessors: below kEnoughColumnSumBlocks blocks, a group
// has as few as two rows.
inline constexpr int kUsualRowsPerGroup = 8, kMinRowsPerGroup = 2;
inline constexpr int64_t kEnoughColumnSumBlocks = 256;
inline constexpr int kPartialSumThreads = 512;

// Blocks of the grid that walks over the rows: at most as many as run at once.
inline unsigned column_sum_blocks(const RowBlock& block, int64_t rows) {
  const int64_t groups = block.rows;
  const int64_t resident = int64_t{block.per_sm} * device_limits().multiprocessors;
  const int64_t usual = ceil_div(rows, kUsualRowsPerGroup * groups),
                most = ceil_div(rows, kMinRowsPerGroup * groups);
  return static_cast<unsigned>(
      std::min(resident, std::max(usual, std::min(most, kEnoughColumnSumBlocks))));
}

template <int kWidth>
TIGON_DEVICE void store_sums(float* p, const float (&sums)[kWidth]) {
  if constexpr (kWidth == 1) {
    store(p, sums[0]);
  } else {
    TIGON_UNROLL
    for (int j = 0; j < kWidth; j += 4)
      store16(p + j, Vec<float>{{sums[j], sums[j + 1], sums[j + 2], sums[j + 3]}});
  }
}

// Column sums of this block, [pieces * kWidth]: the sum over its groups of lanes, each of which has
// seen some of the rows. May be called again at once.
template <int kLanes, int kWidth, int kPieces>
TIGON_DEVICE void store_partial(const float (&lane_sums)[kPieces][kWidth], int64_t pieces,
                                float* partial) {
  constexpr int kGroups = kRowsPerBlock<kLanes>, kColumns = kLanes * kPieces * kWidth;
  const int first = first_piece<kLanes, kPieces>(), group = threadIdx.x / kLanes;
  constexpr int kStride = kPieceStride<kLanes>;
  if constexpr (kGroups == 1) {
    TIGON_UNROLL
    for (int p = 0; p < kPieces; ++p)
      if (const int i = p * kStride + first; i < pieces)
        store_sums(partial + i * kWidth, lane_sums[p]);
  } else {
    TIGON_SHARED(float, sums, [kGroups][kColumns]);
    __syncthreads();
    TIGON_UNROLL
    for (int p = 0; p < kPieces; ++p) {
      TIGON_UNROLL
      for (int j = 0; j < kWidth; ++j)
        sums[group][(p * kStride + first) * kWidth + j] = lane_sums[p][j];
    }
    __syncthreads();
    for (int column = threadIdx.x; column < pieces * kWidth; column += kRowThreads<kLanes>) {
      float sum = 0.0f;
      for (int g = 0; g < kGroups; ++g) sum += sums[g][column];
      store(partial + column, sum);
    }
  }
}

// Partial sums [blocks, h] and where their sums [h] go; no sums: not wanted.
struct ColumnSums {
  const float* partials = nullptr;
  float* sums = nullptr;
};

// sums[h] = sum over blocks of partials[block, h], of `first` and, in a second row of blocks, of
// `second`. A warp adds every 16th row of 32 columns.
template <int kThreads>
TIGON_KERNEL(kThreads)
sum_partials_kernel(ColumnSums first, ColumnSums second, int blocks, int64_t h) {
  constexpr int kWarps = kThreads / 32, kBatch = 16;  // loads in flight
  TIGON_SHARED(float, sums, [kWarps][32]);
  dependency_wait();
  const ColumnSums tensor = blockIdx.y == 0 ? first : second;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + lane;
  float sum = 0.0f;
  for (int from = warp; from < blocks && column < h; from += kBatch * kWarps) {
    float terms[kBatch] = {};
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b)
      if (const int block = from + b * kWarps; block < blocks)
        terms[b] = load(tensor.partials + block * h + column);
    TIGON_UNROLL
    for (int b = 0; b < kBatch; ++b) sum += terms[b];
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= h) return;
  TIGON_UNROLL
  for (int w = 1; w < kWarps; ++w) sum += sums[w][lane];
  store(tensor.sums + column, sum);
}

// Adds the partial sums of one tensor or of two, which the kernel before has written. This one's
// launch overlaps with that kernel if it calls dependency_launch(): of few rows it is what takes
// the time.
inline Status launch_partial_sums(unsigned blocks, int64_t h, const ColumnSums& first,
                                  const ColumnSums& second, Stream stream) {
  const bool both = first.sums != nullptr && second.sums != nullptr;
  const ColumnSums& one = first.sums != nullptr ? first : second;
  if (one.sums == nullptr) return {};
  return launch({.grid = dim3(static_cast<unsigned>(ceil_div(h, 32)), both ? 2 : 1),
                 .block = dim3(kPartialSumThreads),
                 .stream = stream,
                 .dependent = true},
                sum_partials_kernel<kPartialSumThreads>, one, second, static_cast<int>(blocks), h);
}

}  // namespace tigon
