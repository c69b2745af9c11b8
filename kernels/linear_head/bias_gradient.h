// SPDX-License-Identifier: Apache-2.0
// The bias' gradient: sums over the rows of dlogits in fp32, in an order that only the shapes and
// the number of multiprocessors decide.
#pragma once
#include <algorithm>

#include "kernels/device/device.h"
#include "kernels/device/device_limits.h"
#include "kernels/signature/signature.h"

namespace tigon::linear_head {

inline constexpr int kBiasThreads = 256;
inline constexpr int64_t kBiasBlocksPerSm = 8;  // all that a multiprocessor has threads for
inline constexpr int64_t kMinBiasRows = 64;     // of a group; with fewer, sums would be the traffic
template <class T>
inline constexpr int kBiasColumns = 32 * kVec<T>;  // of a block: 16 bytes per lane

// Rows are cut into groups where columns alone make too few blocks.
template <class T>
int64_t bias_groups(int64_t rows, int64_t columns) {
  const int64_t blocks = kBiasBlocksPerSm * device_limits().multiprocessors;
  const int64_t wanted = blocks / ceil_div(columns, int64_t{kBiasColumns<T>});
  return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, ceil_div(rows, kMinBiasRows)));
}

// sums[group, column] = sum of d [rows, columns] over the rows of the group. A warp adds every
// eighth row.
template <class T>
TIGON_KERNEL(kBiasThreads)
bias_sums_kernel(const T* d, int64_t rows, int columns, int64_t stride, int groups, float* sums) {
  constexpr int kWidth = kVec<T>, kWarps = kBiasThreads / 32, kColumns = kBiasColumns<T>;
  TIGON_SHARED(float, of_warp, [kWarps][kColumns]);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int group = blockIdx.x % groups, first = static_cast<int>(blockIdx.x / groups) * kColumns;
  const int column = first + lane * kWidth;
  const int64_t end = rows * (group + 1) / groups;
  float sum[kWidth] = {};
  for (int64_t row = rows * group / groups + warp; row < end; row += kWarps) {
    const T* const from = d + row * stride + column;
    if (column + kWidth <= columns) {
      float f[kWidth];
      unpack(load16(from), f);
      TIGON_UNROLL
      for (int j = 0; j < kWidth; ++j) sum[j] += f[j];
    } else {
      TIGON_UNROLL
      for (int j = 0; j < kWidth; ++j)
        if (column + j < columns) sum[j] += to_float(load(from + j));
    }
  }
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) of_warp[warp][lane * kWidth + j] = sum[j];
  __syncthreads();
  for (int i = threadIdx.x; i < kColumns && first + i < columns; i += kBiasThreads) {
    float all = of_warp[0][i];
    for (int w = 1; w < kWarps; ++w) all += of_warp[w][i];
    store(sums + static_cast<int64_t>(group) * columns + first + i, all);
  }
}

// dbias (+)= sum of sums [groups, columns] over the groups.
TIGON_KERNEL(kBiasThreads)
add_bias_sums_kernel(const float* sums, int groups, int64_t columns, bool adds, float* dbias) {
  const int64_t column = int64_t{blockIdx.x} * kBiasThreads + threadIdx.x;
  if (column >= columns) return;
  float sum = adds ? load(dbias + column) : 0.0f;
  for (int g = 0; g < groups; ++g) sum += load(sums + g * columns + column);
  store(dbias + column, sum);
}

// Enqueues dbias [columns] (+)= sum over the rows of d [rows, columns], which lie `stride` apart
// and start at multiples of 16 bytes. scratch is [bias_groups(), columns].
template <class T>
Status add_bias_gradient(const T* d, int64_t rows, int64_t columns, int64_t stride, bool adds,
                         float* scratch, float* dbias, Stream stream) {
  const auto groups = static_cast<int>(bias_groups<T>(rows, columns));
  const int64_t blocks = ceil_div(columns, int64_t{kBiasColumns<T>}) * groups;
  if (rows > 0) {
    const Status s =
        launch({.grid = dim3(static_cast<unsigned>(blocks)),
                .block = dim3(kBiasThreads),
                .stream = stream},
               bias_sums_kernel<T>, d, rows, static_cast<int>(columns), stride, groups, scratch);
    if (!s.ok()) return s;
  }
  return launch({.grid = dim3(static_cast<unsigned>(ceil_div(columns, int64_t{kBiasThreads}))),
                 .block = dim3(kBiasThreads),
                 .stream = stream},
                add_bias_sums_kernel, scratch, rows > 0 ? groups : 0, columns, adds, dbias);
}

}  // namespace tigon::linear_head
