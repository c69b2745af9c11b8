// SPDX-License-Identifier: Apache-2.0
// Rounds fp32 sums to the type of the gradient that they are of.
#pragma once
#include <algorithm>

#include "kernels/device/device.h"
#include "kernels/signature/checks.h"

namespace tigon::linear_head {

inline constexpr int kRoundThreads = 256;
inline constexpr int64_t kMaxRoundBlocks = 4096;  // some rows each

// to = from rounded to T, or 0 where `from` is null. One block per row at a time; the first
// `vectors` 16-byte vectors of a row of `to` are written whole.
template <class T>
TIGON_KERNEL(kRoundThreads)
round_kernel(const float* from,  // [rows, columns]
             T* to,              // [rows, columns], rows `stride` apart
             int64_t rows, int columns, int64_t stride, int vectors) {
  constexpr int kWidth = kVec<T>, kQuads = kWidth / 4;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* source = from + row * columns;
    T* const target = to + row * stride;
    for (int i = static_cast<int>(threadIdx.x); i < vectors; i += kRoundThreads) {
      float f[kWidth] = {};
      TIGON_UNROLL
      for (int q = 0; q < kQuads && from != nullptr; ++q) {
        const Vec<float> quad = load16_stream(source + i * kWidth + 4 * q);
        TIGON_UNROLL
        for (int j = 0; j < 4; ++j) f[4 * q + j] = quad[j];
      }
      store16(target + i * kWidth, pack<T>(f));
    }
    for (int i = vectors * kWidth + static_cast<int>(threadIdx.x); i < columns; i += kRoundThreads)
      store(target + i, from_float<T>(from != nullptr ? load_stream(source + i) : 0.0f));
  }
}

// Enqueues to = sums rounded, or zeros without sums.
template <class T>
Status round_rows(const float* sums, const View<T, 2>& to, Stream stream) {
  const int64_t rows = to.shape[0];
  const int columns = static_cast<int>(to.shape[1]);
  // Rows of the sums start at a multiple of 16 bytes only when their length is one.
  const bool aligned = columns % kVec<T> == 0 && rows_aligned16(to);
  return launch({.grid = dim3(static_cast<unsigned>(std::min(rows, kMaxRoundBlocks))),
                 .block = dim3(kRoundThreads),
                 .stream = stream},
                round_kernel<T>, sums, to.data, rows, columns, to.stride[0],
                aligned ? columns / kVec<T> : 0);
}

}  // namespace tigon::linear_head
