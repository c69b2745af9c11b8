// SPDX-License-Identifier: Apache-2.0
// softmax of wide rows: y = exp(x - max_V x) / sum_V exp(x - max_V x), by a block or a cluster
// per row, which holds it (kernels/device/held_row.h).
#pragma once
#include "kernels/device/held_row.h"
#include "kernels/softmax/softmax.h"

namespace tigon::softmax {

// Rows of x and y start at the same place between two 16-byte boundaries.
template <class P, int kThreads, int kPieces, int kBlocksPerSm>
TIGON_KERNEL(kThreads, kBlocksPerSm)
forward_held_kernel(Forward<P> args, int64_t ahead) {
  using T = typename P::Elem;
  using Row = HeldRow<T, kThreads, kPieces>;
  using RowPiece = typename Row::RowPiece;
  using Scratch = ExchangeScratch<ExpSum, kThreads>;
  TIGON_DYNAMIC_SHARED(RowPiece, slots);
  TIGON_SHARED(Scratch, scratch, [1]);
  static_assert(sizeof scratch <= kHeldStaticShared);
  const int64_t row = held_row();
  const unsigned rank = cluster_rank();
  const int columns = static_cast<int>(args.x.shape[1]);
  const T* const x = args.x.data + row * args.x.stride[0];  // [V]
  if (threadIdx.x == 0 && row + ahead < args.x.shape[0])
    prefetch_held(x + ahead * args.x.stride[0], columns);

  const Slice slice = slice_of<kVec<T>>(x, columns, rank, cluster_size());
  Row held(x, slice, slots);
  int end = -1;  // a column before or after the vectors that is this thread's
  for_each_end<kThreads>(slice, columns, rank, threadIdx.x, [&](int column) { end = column; });
  const float x_end = end >= 0 ? to_float(load(x + end)) : 0.0f;
  begin_exchange(scratch[0]);
  const ExpSum total =
      cluster_exchange<kThreads>(held_exp_sum(held, end >= 0, x_end), JoinExpSums{}, scratch[0]);

  const ShiftedExp e(total.max);
  const float inverse = e.fix * fast_div(1.0f, total.sum);
  T* const y = args.y.data + row * args.y.stride[0];  // [V]
  held.store_each(y, [&](auto& f) {
    for (float& v : f) v = e.part(v) * inverse;
  });
  if (end >= 0) store(y + end, from_float<T>(e.part(x_end) * inverse));
}

}  // namespace tigon::softmax
