// softmax of wide rows: y = exp(x - max_V x) / sum_V exp(x - max_V x), by clusters that walk over
// rows which arrive through a ring (kernels/device/row_ring.h).
#pragma once
#include "kernels/device/exp_sum.h"
#include "kernels/device/row_ring.h"
#include "kernels/softmax/softmax.h"

namespace tigon::softmax {

// Rows of x and y start at the same place between two 16-byte boundaries.
template <class P, int kThreads, int kPieces, int kBlocksPerSm, int kSlots>
TIGON_KERNEL(kThreads, kBlocksPerSm)
forward_ring_kernel(Forward<P> args) {
  using T = typename P::Elem;
  if constexpr (kHasBulkCopy) {
    using Ring = RowRing<T, kThreads, kPieces, kSlots, EveryRow>;
    using Shared = RingShared<Ring, ExpSum, kThreads>;
    using RowPiece = typename Ring::RowPiece;
    TIGON_DYNAMIC_SHARED(RowPiece, slots);
    TIGON_SHARED(Shared, shared, [1]);
    static_assert(sizeof shared <= kRingStaticShared);
    const auto rows = static_cast<uint32_t>(args.x.shape[0]);
    const int columns = static_cast<int>(args.x.shape[1]);

    if (threadIdx.x == 0) init_exchange(shared->landed);
    Ring ring({args.x.data, args.x.stride[0], rows, columns}, {}, slots, shared->full);
    cluster_begin();
    // A column before or after the vectors that is this thread's, or -1, and its value.
    int end = -1;
    T x_end{};
    const auto look_ahead = [&](uint32_t row) {
      end = -1;
      for_each_end<kThreads>(ring.slice(row), columns, cluster_rank(), threadIdx.x,
                             [&](int column) { end = column; });
      if (end >= 0) x_end = load(args.x.data + row * args.x.stride[0] + end);
    };
    uint32_t row = Ring::first_row();
    if (row < rows) look_ahead(row);
    for (unsigned calls = 0; row < rows; ++calls) {
      const Slice slice = ring.slice(row);
      ExpSum total;
      ring.read(slice, [&](auto& f) { add(total, f); });
      if (end >= 0) add(total, {to_float(x_end)});
      total =
          cluster_exchange<kThreads>(total, JoinExpSums{}, shared->scratch, shared->landed, calls);

      const ShiftedExp e(total.max);
      const float inverse = e.fix * fast_div(1.0f, total.sum);
      const auto y_of = [&](float x) { return e.part(x) * inverse; };
      T* const y = args.y.data + row * args.y.stride[0];  // [V]
      ring.take(slice, y, [&](auto& f, int) {
        for (float& v : f) v = y_of(v);
      });
      if (end >= 0) store(y + end, from_float<T>(y_of(to_float(x_end))));
      row += Ring::step();
      if (row < rows) look_ahead(row);
    }
  }
}

}  // namespace tigon::softmax
