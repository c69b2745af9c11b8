// SPDX-License-Identifier: Apache-2.0
// softmax backward of wide rows: dx = y * (dy - sum_V y * dy), by blocks that walk over rows which
// arrive through a ring (kernels/softmax/row_ring.h).
#pragma once
#include "kernels/device/reduce.h"
#include "kernels/softmax/row_ring.h"
#include "kernels/softmax/softmax.h"

namespace tigon::softmax {

// Rows of y, dy and dx start at the same place between two 16-byte boundaries.
template <class P, int kThreads, int kPieces, int kBlocksPerSm, int kSlots>
TIGON_KERNEL(kThreads, kBlocksPerSm)
backward_ring_kernel(Backward<P> args) {
  using T = typename P::Elem;
  if constexpr (kHasBulkCopy) {
    using Ring = RowRing<T, kThreads, kPieces, kSlots>;
    using RowPiece = typename Ring::RowPiece;
    TIGON_DYNAMIC_SHARED(RowPiece, slots);
    TIGON_SHARED(Mbarrier, full, [Ring::kBarriers]);
    static_assert(sizeof full + 2 * (kThreads / 32) * sizeof(float) <= kRingStaticShared);
    const auto rows = static_cast<uint32_t>(args.y.shape[0]);
    const int columns = static_cast<int>(args.y.shape[1]);

    Ring ring({{args.y.data, args.dy.data}, {args.y.stride[0], args.dy.stride[0]}, rows, columns},
              slots, full);
    // A column before or after the vectors that is this thread's, or -1, and its values.
    int end = -1;
    T y_end{}, dy_end{};
    const auto look_ahead = [&](uint32_t row) {
      end = -1;
      for_each_end<kThreads>(ring.slice(row), columns, 0, threadIdx.x,
                             [&](int column) { end = column; });
      if (end < 0) return;
      y_end = load(args.y.data + row * args.y.stride[0] + end);
      dy_end = load(args.dy.data + row * args.dy.stride[0] + end);
    };
    uint32_t row = blockIdx.x;
    if (row < rows) look_ahead(row);
    for (int parity = 0; row < rows; parity ^= 1) {
      const Slice slice = ring.slice(row);
      float sum = 0.0f;
      ring.read(slice, [&]<int kCount>(float(&y)[kCount], float(&dy)[kCount]) {
        float products = 0.0f;
        TIGON_UNROLL
        for (int j = 0; j < kCount; ++j) products += y[j] * dy[j];
        sum += products;
      });
      if (end >= 0) sum += to_float(y_end) * to_float(dy_end);
      sum = block_reduce_alternating<kThreads>(sum, Sum{}, parity);

      T* const dx = args.dx.data + row * args.dx.stride[0];  // [V]
      ring.take(slice, dx, [&]<int kCount>(float(&y)[kCount], float(&dy)[kCount]) {
        TIGON_UNROLL
        for (int j = 0; j < kCount; ++j) y[j] *= dy[j] - sum;
      });
      if (end >= 0) store(dx + end, from_float<T>(to_float(y_end) * (to_float(dy_end) - sum)));
      row += gridDim.x;
      if (row < rows) look_ahead(row);
    }
  }
}

}  // namespace tigon::softmax
