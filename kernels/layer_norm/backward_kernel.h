// SPDX-License-Identifier: Apache-2.0
// layer_norm backward   dx = rstd * (m - mean_H(m) - x_hat * mean_H(m * x_hat)),  m = dy * w,
//                       dw = sum_T dy * x_hat,  db = sum_T dy,  x_hat = (x - mean) * rstd
//
// A fixed grid walks over the rows. x and dy are read once and stay in shared memory, short rows in
// registers. The next rows are in flight meanwhile (row_queue.h). dw and db are summed as in
// device/column_sums.h. Bytes: (3*T*H + H)*elem + 8*T + 8*H, and the partial sums.
#pragma once
#include "kernels/device/column_sums.h"
#include "kernels/device/row_queue.h"
#include "kernels/device/rows_ahead.h"
#include "kernels/layer_norm/layer_norm.h"

namespace tigon::layer_norm {

// sum(m) and sum(m * x_hat) of a row, added together through one barrier.
struct RowSums {
  float m, product;
  TIGON_DEVICE friend RowSums operator+(RowSums a, RowSums b) {
    return {a.m + b.m, a.product + b.product};
  }
};

// m of a piece; w of ones where there is no weight.
template <class P, int kWidth>
TIGON_DEVICE void weigh(const Piece<typename P::Elem, kWidth>& w, const float (&dy)[kWidth],
                        float (&m)[kWidth]) {
  unpack_piece(w, m);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) m[j] = m[j] * dy[j];
}

// Mean and 1 / sd of a row. x_hat = x * rstd + shift is one operation less for each element than
// (x - mean) * rstd, and no less exact: the mean itself is rounded.
struct RowStatistics {
  float mean, rstd, shift;
};

// Adds m and m * x_hat of a piece to the sums of its row, dy * x_hat and dy to those of its
// columns.
template <class P, int kWidth>
TIGON_DEVICE void add_piece(const Piece<typename P::Elem, kWidth>& x,
                            const Piece<typename P::Elem, kWidth>& dy_piece,
                            const Piece<typename P::Elem, kWidth>& w, const RowStatistics& row,
                            float (&sums)[kWidth], float (&products)[kWidth], float (&dw)[kWidth],
                            float (&db)[kWidth]) {
  float x_hat[kWidth], m[kWidth], dy[kWidth];
  unpack_piece(x, x_hat);
  unpack_piece(dy_piece, dy);
  weigh<P>(w, dy, m);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) x_hat[j] = fmaf(x_hat[j], row.rstd, row.shift);
  add_products(m, x_hat, products);
  add_products(dy, x_hat, dw);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) {
    sums[j] += m[j];
    db[j] += dy[j];
  }
}

template <class P, int kWidth>
TIGON_DEVICE void store_dx(const Piece<typename P::Elem, kWidth>& x_piece,
                           const Piece<typename P::Elem, kWidth>& dy_piece,
                           const Piece<typename P::Elem, kWidth>& w, const RowStatistics& row,
                           RowSums means, typename P::Elem* dx) {
  float x[kWidth], dy[kWidth], m[kWidth];
  unpack_piece(x_piece, x);
  unpack_piece(dy_piece, dy);
  weigh<P>(w, dy, m);
  const float pull = row.rstd * means.product;
  const float base = -fmaf(pull, row.shift, row.rstd * means.m), slope = -pull * row.rstd;
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) m[j] = fmaf(m[j], row.rstd, fmaf(x[j], slope, base));
  store_piece(dx, m);
}

// Adds to sums in memory, which the first row of a block sets.
template <int kWidth>
TIGON_DEVICE void add_in_memory(float* p, bool first, const float (&terms)[kWidth]) {
  if (p == nullptr) return;
  for (int j = 0; j < kWidth; ++j) store(p + j, (first ? 0.0f : load(p + j)) + terms[j]);
}

// partial_dw, partial_db: [gridDim.x, H], or null where the sum is not wanted. kLongRows: rows may
// be longer than registers hold; there is one row per block then, and the columns behind sum dw and
// db in memory. dx may be dy's memory.
template <class P, int kWidth, int kLanes, int kPieces, int kBlocksPerSm, int kStages,
          bool kLongRows>
TIGON_KERNEL(kRowThreads<kLanes>, kBlocksPerSm)
backward_kernel(Backward<P> args, float* partial_dw, float* partial_db) {
  using T = typename P::Elem;
  using RowPiece = Piece<T, kWidth>;
  using Queue = RowQueue<T, kWidth, kLanes, kPieces, kStages>;
  constexpr int kInRegisters = kLanes * kPieces;
  constexpr bool kInShared = Queue::kCopies && kLanes > 32;  // where the rows landed
  constexpr bool kLong = kInShared && kPieces >= 4;          // leaves registers for the sums only
  const int lane = threadIdx.x % kLanes;
  const int64_t rows = args.x.shape[0], h = args.x.shape[1], pieces = h / kWidth;
  const int64_t step = Queue::step(), first = int64_t{blockIdx.x} * kRowsPerBlock<kLanes>;
  const float inverse_h = 1.0f / static_cast<float>(h);
  if (partial_dw != nullptr) partial_dw += blockIdx.x * h;
  if (partial_db != nullptr) partial_db += blockIdx.x * h;
  // The thread has its p-th piece of a row on chip if p * kLanes < mine.
  const int resident = static_cast<int>(pieces < kInRegisters ? pieces : kInRegisters) - lane;
  const auto mine_of = [&](int64_t of) { return of < rows ? resident : 0; };

  TIGON_DYNAMIC_SHARED(Vec<T>, slots);
  Queue x_queue(slots, args.x.data, args.x.stride[0]);
  Queue dy_queue(slots + Queue::kVectors, args.dy.data, args.dy.stride[0]);
  const auto request = [&](int64_t next, int slot) {
    const int mine = mine_of(next);
    x_queue.request(mine, slot);
    dy_queue.request(mine, slot);
    Queue::close();
    if (kLong && !kLongRows && lane == 0) prefetch_rows(next + step, args.x, args.dy);
  };
  const auto load_statistic = [&](const auto& statistic, int64_t of) {
    return of < rows ? load(statistic.data + of) : 0.0f;
  };
  int64_t row = Queue::first_row();
  dependency_launch();
  TIGON_UNROLL
  for (int ahead = 0; ahead < Queue::kDepth; ++ahead) request(row + ahead * step, ahead);
  float next_mean = load_statistic(args.mean, row), next_rstd = load_statistic(args.rstd, row);
  RowPiece weight[kLong ? 1 : kPieces] = {};
  if constexpr (!kLong) load_pieces_or<kWidth, kLanes>(args.w.data, 1.0f, lane, resident, weight);
  float dw[kPieces][kWidth] = {}, db[kPieces][kWidth] = {};

  struct Row {  // that is worked on: where it landed, or in registers
    int mine, slot;
    RowPiece x[kInShared ? 1 : kPieces], dy[kInShared ? 1 : kPieces];
  };
  // f(x, dy, w) of the thread's p-th piece.
  const auto with_piece = [&](int p, Row& at, const auto& f) {
    if constexpr (!kLong) keep_packed(weight[p]);
    if constexpr (kLong) {
      f(x_queue.at(at.slot, p), dy_queue.at(at.slot, p),
        load_piece_or<kWidth>(args.w.data, 1.0f, p * kLanes + lane));
    } else if constexpr (kInShared) {
      f(x_queue.at(at.slot, p), dy_queue.at(at.slot, p), weight[p]);
    } else {
      keep_packed(at.x[p]);
      keep_packed(at.dy[p]);
      f(at.x[p], at.dy[p], weight[p]);
    }
  };
  const auto means_of = [&](const RowSums& sums) {
    RowSums means = {sums.m * inverse_h, sums.product * inverse_h};
    return means;
  };
  const auto add_resident = [&](Row& at, const RowStatistics& statistics, float(&sums)[kWidth],
                                float(&products)[kWidth]) {
    for_lane_pieces<kLanes, kPieces>(at.mine, [&](int p) {
      with_piece(p, at, [&](const RowPiece& x, const RowPiece& dy, const RowPiece& w) {
        add_piece<P>(x, dy, w, statistics, sums, products, dw[p], db[p]);
      });
    });
  };
  T* dx_row = args.dx.data + row * args.dx.stride[0] + lane * kWidth;  // from its first piece on
  const int64_t dx_step = step * args.dx.stride[0];
  const auto store_resident = [&](Row& at, const RowStatistics& statistics, RowSums means) {
    for_lane_pieces<kLanes, kPieces>(at.mine, [&](int p) {
      with_piece(p, at, [&](const RowPiece& x, const RowPiece& dy, const RowPiece& w) {
        store_dx<P>(x, dy, w, statistics, means, dx_row + p * kLanes * kWidth);
      });
    });
  };
  const auto next_statistics = [&](int64_t after) {
    const RowStatistics statistics = {next_mean, next_rstd, -next_mean * next_rstd};
    next_mean = load_statistic(args.mean, after);
    next_rstd = load_statistic(args.rstd, after);
    return statistics;
  };

  // All rows of the block together: the last ones of a warp may be missing, not the warp.
  if constexpr (kInShared && !kLongRows && kStages > 2) {
    // While the sums of a row are on their way, those of the next are added up.
    TIGON_SHARED(RowSums, warp_sums, [2][kLanes / 32]);
    SteppedRowSum<kLanes, RowSums> row_sums(warp_sums);
    const auto post = [&](int64_t of, int slot, const RowStatistics& statistics, int parity) {
      float sums[kWidth] = {}, products[kWidth] = {};
      Row at = {mine_of(of), slot, {}, {}};
      add_resident(at, statistics, sums, products);
      row_sums.post({sum_of(sums), sum_of(products)}, parity);
    };
    Queue::await();
    RowStatistics statistics = next_statistics(row + step);
    post(row, 0, statistics, 0);
    int slot = 0, parity = 0;
    for (; row < rows; row += step) {
      const int next_slot = (slot + 1) % Queue::kDepth;
      const RowSums means = means_of(row_sums.collect(parity));
      const RowStatistics next = next_statistics(row + 2 * step);
      Queue::template await<1>();
      post(row + step, next_slot, next, parity ^ 1);
      Row at = {mine_of(row), slot, {}, {}};
      store_resident(at, statistics, means);
      request(row + Queue::kDepth * step, slot);
      statistics = next;
      slot = next_slot;
      parity ^= 1;
      dx_row += dx_step;
    }
  } else {
    int slot = 0, parity = 0;
    for (int64_t block_row = first; block_row < rows; block_row += step, row += step) {
      Row at;
      at.mine = mine_of(row);
      at.slot = slot;
      leave_unset(at.x);
      leave_unset(at.dy);
      Queue::await();
      if constexpr (!kInShared) {
        x_queue.receive(at.mine, slot, at.x);
        dy_queue.receive(at.mine, slot, at.dy);
        request(row + Queue::kDepth * step, slot);
      }
      const RowStatistics statistics = next_statistics(row + step);
      // f(x, dy, w, i) of piece i of those that do not stay on chip.
      const auto with_tail = [&](const auto& f) {
        const T* x_row = args.x.data + row * args.x.stride[0];     // [H]
        const T* dy_row = args.dy.data + row * args.dy.stride[0];  // [H]
        for (int64_t i = kInRegisters + lane; i < pieces; i += kLanes)
          if (row < rows)
            f(load_piece<kWidth>(x_row + i * kWidth), load_piece<kWidth>(dy_row + i * kWidth),
              load_piece_or<kWidth>(args.w.data, 1.0f, i), i);
      };
      float sums[kWidth] = {}, products[kWidth] = {};
      add_resident(at, statistics, sums, products);
      if constexpr (kLongRows)
        with_tail([&](const RowPiece& x, const RowPiece& dy, const RowPiece& w, int64_t i) {
          float dw_terms[kWidth] = {}, db_terms[kWidth] = {};
          add_piece<P>(x, dy, w, statistics, sums, products, dw_terms, db_terms);
          const bool is_first = block_row == first;
          add_in_memory(partial_dw == nullptr ? nullptr : partial_dw + i * kWidth, is_first,
                        dw_terms);
          add_in_memory(partial_db == nullptr ? nullptr : partial_db + i * kWidth, is_first,
                        db_terms);
        });
      const RowSums means =
          means_of(row_sum<kLanes>(RowSums{sum_of(sums), sum_of(products)}, parity));
      parity ^= 1;
      store_resident(at, statistics, means);
      if constexpr (kLongRows)
        with_tail([&](const RowPiece& x, const RowPiece& dy, const RowPiece& w, int64_t i) {
          store_dx<P>(x, dy, w, statistics, means, dx_row + (i - lane) * kWidth);
        });
      if constexpr (kInShared) request(row + Queue::kDepth * step, slot);
      slot = (slot + 1) % Queue::kDepth;
      dx_row += dx_step;
    }
  }
  if (partial_dw != nullptr) store_partial<kLanes>(dw, pieces, partial_dw);
  if (partial_db != nullptr) store_partial<kLanes>(db, pieces, partial_db);
}

}  // namespace tigon::layer_norm
