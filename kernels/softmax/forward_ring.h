// softmax of wide rows: y = exp(x - max_V x) / sum_V exp(x - max_V x), by clusters that walk over
// rows which arrive through a ring (kernels/device/row_ring.h).
#pragma once
#include "kernels/device/cluster_exchange.h"
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
    using Ring = RowRing<T, 1, kThreads, kPieces, kSlots, EveryRow>;
    using Scratch = ExchangeScratch<ExpSum, kThreads>;
    using RowPiece = typename Ring::RowPiece;
    TIGON_DYNAMIC_SHARED(RowPiece, slots);
    TIGON_SHARED(Mbarrier, full, [Ring::kBarriers]);
    TIGON_SHARED(Mbarrier, landed, [2]);
    TIGON_SHARED(Scratch, scratch, [1]);
    static_assert(sizeof full + sizeof landed + sizeof scratch <= kRingStaticShared);
    const auto rows = static_cast<uint32_t>(args.x.shape[0]);
    const int columns = static_cast<int>(args.x.shape[1]);

    if (threadIdx.x == 0) init_exchange(landed);
    Ring ring({{args.x.data}, {args.x.stride[0]}, rows, columns}, {}, slots, full);
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
      total = cluster_exchange<kThreads>(total, JoinExpSums{}, scratch[0], landed, calls);

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
