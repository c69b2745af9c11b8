// SPDX-License-Identifier: Apache-2.0
// Loss and gradient of wide rows in the plain form: the formulas of rows.cu, by a block or a
// cluster that keeps the whole row on chip (device/held_row.h). Every instruction that all threads
// execute counts. So one thread, which has the target's column, computes the gradient's factors and
// the logarithm, and the maximum is found two elements at a time.
#pragma once
#include "kernels/device/held_row.h"
#include "kernels/loss/row.h"
#include "kernels/loss/sweep.h"

namespace tigon {

// The thread that reads the target's logit and later overwrites it; thread 0 of the first block
// where there is no such logit. -1: it is in another block.
template <class Row>
TIGON_DEVICE int target_holder(int y, const Slice& s) {
  if (y >= s.head && y < s.tail) return Row::holder_of(y, s);
  if (cluster_rank() != 0) return -1;
  if (y < 0) return 0;
  return y < s.head ? y : s.head + y - s.tail;
}

// An ignored row is not read: its gradient is zeros, and so are its results.
template <LossForm kForm, int kThreads, class T>
TIGON_DEVICE void ignore_row(const LossRows<T>& a, int64_t row, T* x, const Slice& slice,
                             int columns, unsigned rank) {
  fill_zero<T, kThreads>(x, slice, columns, rank);
  if (rank == 0 && threadIdx.x == 0) write_ignored_row<kForm>(a, row);
  dependency_wait();
}

// The statistics of all that the thread holds, and of `end` where it has one beside them.
template <class Row>
TIGON_DEVICE Statistics<LossForm::kPlain> held_statistics(Row& held, bool has_end, float end,
                                                          bool smooth) {
  Statistics<LossForm::kPlain> s;
  s.exp = held_exp_sum(held, has_end, end);
  if (smooth) {
    s.sum = end;
    held.for_each([&](auto& f, int) {
      for (const float v : f) s.sum += v;
    });
  }
  return s;
}

// The gradient of all that the thread holds, as if none of it were the target.
template <class Row, class T>
TIGON_DEVICE void store_held_gradient(Row& held, T* x, const ExpSum& exp,
                                      const LossGradient<LossForm::kPlain>& gradient) {
  const ShiftedExp e(exp.max);
  const float scale = gradient.scale * e.fix * fast_div(1.0f, exp.sum);
  const float offset = gradient.offset;
  held.store_each(x, [&](auto& f) {
    for (float& v : f) v = scale * e.part(v) - offset;
  });
}

template <class T, int kThreads, int kPieces, int kBlocksPerSm>
TIGON_KERNEL(kThreads, kBlocksPerSm)
loss_held_kernel(LossRows<T> a, int64_t ahead) {
  constexpr LossForm kForm = LossForm::kPlain;
  using Row = HeldRow<T, kThreads, kPieces>;
  using RowPiece = typename Row::RowPiece;
  using Sums = Statistics<kForm>;
  using Scratch = ExchangeScratch<Sums, kThreads>;
  TIGON_DYNAMIC_SHARED(RowPiece, slots);
  TIGON_SHARED(Scratch, scratch, [1]);
  TIGON_SHARED(RowFactors, factors, [1]);
  static_assert(sizeof scratch + sizeof factors <= kHeldStaticShared);
  const int64_t row = held_row();
  const unsigned rank = cluster_rank();
  const int columns = static_cast<int>(a.columns);
  T* const x = a.logits + row * a.stride;
  dependency_launch();  // of the losses' sum, which waits for all rows
  const int64_t target = load(a.target + row);
  if (threadIdx.x == 0 && row + ahead < a.rows &&
      !is_ignored(load(a.target + row + ahead), a.options))
    prefetch_held(x + ahead * a.stride, columns);

  const Slice slice = slice_of<kVec<T>>(x, columns, rank, cluster_size());
  if (is_ignored(target, a.options))
    return ignore_row<kForm, kThreads>(a, row, x, slice, columns, rank);
  Row held(x, slice, slots);
  const int y = target >= 0 && target < columns ? static_cast<int>(target) : -1;
  const int holder = target_holder<Row>(y, slice), thread = static_cast<int>(threadIdx.x);
  const bool has_target = thread == holder;
  int end = -1;  // a column before or after the vectors that is this thread's
  for_each_end<kThreads>(slice, columns, rank, thread, [&](int column) { end = column; });
  float x_end[1] = {end >= 0 ? to_float(load(x + end)) : 0.0f}, x_y[1] = {NAN};
  if (has_target && y >= 0) x_y[0] = to_float(load(x + y));
  dependency_wait();  // the totals
  if (thread == max(holder, 0)) factors[0] = gradient_factors<kForm>(a, row, y);
  begin_exchange(scratch[0]);

  const bool smooth = a.options.label_smoothing != 0.0f;
  Sums s = held_statistics(held, end >= 0, x_end[0], smooth);
  s = cluster_exchange<kThreads>(s, JoinPlain{smooth}, scratch[0]);
  const RowFactors of_row = factors[0];
  const float lse =
      has_target || of_row.z_loss != 0.0f || end >= 0 ? s.exp.max + logf(s.exp.sum) : 0.0f;
  const RowGradient<kForm> g = row_gradient<kForm>(a, of_row, lse);
  store_held_gradient(held, x, s.exp, g.of_column);
  if (end >= 0) write_vector(x, end, x_end, g.of_column, y, g.at_target);
  if (!has_target) return;
  write_row<kForm>(a, row, s, lse, y, x_y[0]);
  if (y >= 0) write_vector(x, y, x_y, g.of_column, y, g.at_target);
}

}  // namespace tigon
