// Loss and gradient of wide rows in the plain form: the formulas of loss_rows.cu, by clusters that
// walk over rows which arrive through a ring (row_ring.h).
#pragma once
#include "kernels/device/cluster_exchange.h"
#include "kernels/device/loss_row.h"
#include "kernels/device/loss_sweep.h"
#include "kernels/device/row_ring.h"

namespace tigon {

// Does this thread store the row's loss? One of the block that will overwrite the target's logit,
// which it reads before; and one that has no column before or after the vectors. The first block
// takes every target that no other one holds.
template <int kWidth, int kThreads>
TIGON_DEVICE bool stores_loss(const Slice& s, int64_t target) {
  if (threadIdx.x != kThreads - 1) return false;
  const bool before = target < s.head + s.first * kWidth,
             behind = target >= s.head + s.last * kWidth;
  return cluster_rank() == 0 ? !behind || target >= s.tail : !before && !behind;
}

// What a thread needs to know of a row before the row is in reach.
template <class T>
struct RowAhead {
  int64_t target;
  Slice slice;
  int end;  // a column before or after the vectors that is this thread's, or -1
  T logit;  // of that column; of the target in the thread that stores the loss
};

template <class T, int kThreads>
TIGON_DEVICE RowAhead<T> look_ahead(const LossRows<T>& a, uint32_t row, int64_t target) {
  const int columns = static_cast<int>(a.columns);
  const T* const x = a.logits + row * a.stride;
  const Slice slice = slice_of<kVec<T>>(x, columns, cluster_rank(), cluster_size());
  RowAhead<T> r = {target, slice, -1, {}};
  for_each_end<kThreads>(slice, columns, cluster_rank(), threadIdx.x, [&](int c) { r.end = c; });
  if (r.end >= 0) r.logit = load(x + r.end);
  if (target >= 0 && target < columns && stores_loss<kVec<T>, kThreads>(slice, target))
    r.logit = load(x + target);
  return r;
}

template <class T, int kThreads, int kPieces, int kBlocksPerSm, int kSlots>
TIGON_KERNEL(kThreads, kBlocksPerSm)
loss_ring_kernel(LossRows<T> a) {
  constexpr LossForm kForm = LossForm::kPlain;
  constexpr int kWidth = kVec<T>;
  if constexpr (kHasBulkCopy) {
    using Ring = RowRing<T, 1, kThreads, kPieces, kSlots, NotIgnored>;
    using Scratch = ExchangeScratch<Statistics<kForm>, kThreads>;
    using RowPiece = typename Ring::RowPiece;
    TIGON_DYNAMIC_SHARED(RowPiece, slots);
    TIGON_SHARED(Mbarrier, full, [Ring::kBarriers]);
    TIGON_SHARED(Mbarrier, landed, [2]);
    TIGON_SHARED(Scratch, scratch, [1]);
    static_assert(sizeof full + sizeof landed + sizeof scratch <= kRingStaticShared);
    const int columns = static_cast<int>(a.columns);
    const auto rows = static_cast<uint32_t>(a.rows);
    const bool smooth = a.options.label_smoothing != 0.0f;
    const NotIgnored not_ignored = {a.target, a.options.ignore_index};

    if (threadIdx.x == 0) init_exchange(landed);
    Ring ring({{a.logits}, {a.stride}, rows, columns}, not_ignored, slots, full);
    cluster_begin();
    uint32_t row = Ring::first_row();
    RowAhead<T> ahead = {};
    if (row < rows) ahead = look_ahead<T, kThreads>(a, row, load(a.target + row));
    // One upstream gradient for all rows is loaded here: a row's loads and division would stand
    // between its copies' landing and its statistics.
    const bool per_row = a.options.reduction == Reduction::kNone;
    const RowFactors of_all = per_row ? RowFactors{} : gradient_factors<kForm>(a, 0, 0);
    for (unsigned calls = 0; row < rows; row += Ring::step()) {
      const uint32_t next_row = row + Ring::step();
      const int64_t next_target = next_row < rows ? load(a.target + next_row) : 0;
      const Slice slice = ahead.slice;
      T* const x = a.logits + row * a.stride;
      if (!not_ignored.wanted(ahead.target)) {
        if (!planted("loss.ignored_gradient_kept"))
          fill_zero<T, kThreads>(x, ring.slice(row), columns, cluster_rank());
        if (stores_loss<kWidth, kThreads>(slice, ahead.target)) write_ignored_row<kForm>(a, row);
      } else {
        const bool valid = ahead.target >= 0 && ahead.target < a.columns;
        const int y = valid ? static_cast<int>(ahead.target) : -1;
        const RowFactors factors = per_row || !valid ? gradient_factors<kForm>(a, row, y) : of_all;
        Statistics<kForm> s;
        ring.read(slice, [&](auto& f) {
          add(s.exp, f);
          if (smooth)
            for (const float v : f) s.sum += v;
        });
        float end[1] = {to_float(ahead.logit)};
        if (ahead.end >= 0) {
          add(s.exp, end);
          s.sum += end[0];
        }
        s = cluster_exchange<kThreads>(s, JoinPlain{smooth}, scratch[0], landed, calls++);
        const float lse = s.exp.max + logf(s.exp.sum);
        if (stores_loss<kWidth, kThreads>(slice, ahead.target))
          write_row<kForm>(a, row, s, lse, y, valid ? to_float(ahead.logit) : NAN);
        const RowGradient<kForm> g = row_gradient<kForm>(a, factors, lse);
        const ShiftedExp p(lse);
        const float scale = g.of_column.scale * p.fix, offset = g.of_column.offset;
        ring.take(slice, x, [&](auto& f, int column) {
          for (float& v : f) v = scale * p.part(v) - offset;
          if (const int first = column - static_cast<int>(threadIdx.x % 32) * kWidth;
              y < first || y >= first + Ring::kColumns)
            return;
          TIGON_UNROLL
          for (int j = 0; j < Ring::kValues; ++j)
            if (column + Ring::column_of(j) == y) f[j] -= g.at_target;
        });
        if (ahead.end >= 0) write_vector(x, ahead.end, end, g.of_column, y, g.at_target);
      }
      if (next_row < rows) ahead = look_ahead<T, kThreads>(a, next_row, next_target);
    }
  }
}

}  // namespace tigon
