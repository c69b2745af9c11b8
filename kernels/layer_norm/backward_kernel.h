// SPDX-License-Identifier: Apache-2.0
// layer_norm backward   dx = rstd * (m - mean_H(m) - x_hat * mean_H(m * x_hat)),  m = dy * w,
//                       dw = sum_T dy * x_hat,  db = sum_T dy,  x_hat = (x - mean) * rstd
//
// A fixed grid walks over the rows. x and dy are read once and stay in shared memory, short rows in
// registers. The next rows are in flight meanwhile (row_queue.h). dw and db are summed as in
// norm/column_sums.h. Bytes: (3*T*H + H)*elem + 8*T + 8*H, and the partial sums.
#pragma once
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/norm/column_sums.h"
#include "kernels/norm/row_queue.h"
#include "kernels/norm/rows_ahead.h"

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

// A thread's arrays in registers. Its counters are in another object: nvcc leaves an object with
// arrays in memory until it unrolls loops, and until then optimises its other members less.
template <class T, int kWidth, int kPieces, int kWeightPieces>
struct BackwardRegisters {
  Piece<T, kWidth> weight[kWeightPieces] = {};
  float dw[kPieces][kWidth] = {}, db[kPieces][kWidth] = {};
};

// The walk of backward_kernel() over rows, of one thread.
template <class P, int kWidth, int kLanes, int kPieces, int kStages, bool kLongRows>
class BackwardWalk {
  using T = typename P::Elem;
  using RowPiece = Piece<T, kWidth>;

 public:
  using Queue = RowQueue<T, kWidth, kLanes, kPieces, kStages>;
  static constexpr bool kInShared = Queue::kCopies && kLanes > 32;  // where the rows landed
  static constexpr bool kLong = kInShared && kPieces >= 4;  // leaves registers for the sums only
  // While the sums of a row are on their way, those of the next are added up.
  static constexpr bool kStepped = kInShared && !kLongRows && kStages > 2;
  using Registers = BackwardRegisters<T, kWidth, kPieces, kLong ? 1 : kPieces>;

  // partial_dw, partial_db: [H], the block's.
  TIGON_DEVICE BackwardWalk(const Backward<P>& args, float* partial_dw, float* partial_db,
                            Queue& x_queue, Queue& dy_queue, Registers& registers)
      : args_(args),
        partial_dw_(partial_dw),
        partial_db_(partial_db),
        x_queue_(x_queue),
        dy_queue_(dy_queue),
        r_(registers) {}

  TIGON_DEVICE void walk() {
    dependency_launch();
    TIGON_UNROLL
    for (int ahead = 0; ahead < Queue::kDepth; ++ahead) request(row_ + ahead * step_, ahead);
    next_mean_ = load_statistic(args_.mean, row_);
    next_rstd_ = load_statistic(args_.rstd, row_);
    if constexpr (!kLong)
      load_pieces_or<kWidth, kLanes>(args_.w.data, 1.0f, piece_, resident_, r_.weight);
    dx_row_ = args_.dx.data + row_ * args_.dx.stride[0] + piece_ * kWidth;
    if constexpr (kStepped)
      walk_stepped();
    else
      walk_one_by_one();
    if (partial_dw_ != nullptr) store_partial<kLanes>(r_.dw, pieces_, partial_dw_);
    if (partial_db_ != nullptr) store_partial<kLanes>(r_.db, pieces_, partial_db_);
  }

 private:
  struct Row {  // that is worked on: where it landed, or in registers
    int mine, slot;
    RowPiece x[kInShared ? 1 : kPieces], dy[kInShared ? 1 : kPieces];
  };

  // All rows of the block together: the last ones of a warp may be missing, not the warp.
  TIGON_DEVICE void walk_stepped() {
    TIGON_SHARED(RowSums, warp_sums, [2][kLanes / 32]);
    SteppedRowSum<kLanes, RowSums> row_sums(warp_sums);
    const auto post = [&](int64_t of, int slot, const RowStatistics& statistics, int parity) {
      Row at = {mine_of(of), slot, {}, {}};
      row_sums.post(sums_on_chip(at, statistics), parity);
    };
    const int64_t dx_step = step_ * args_.dx.stride[0];
    Queue::await();
    RowStatistics statistics = next_statistics(row_ + step_);
    post(row_, 0, statistics, 0);
    int slot = 0, parity = 0;
    for (; row_ < rows_; row_ += step_) {
      const int next_slot = (slot + 1) % Queue::kDepth;
      const RowSums means = means_of(row_sums.collect(parity));
      const RowStatistics next = next_statistics(row_ + 2 * step_);
      Queue::template await<1>();
      post(row_ + step_, next_slot, next, parity ^ 1);
      Row at = {mine_of(row_), slot, {}, {}};
      store_resident(at, statistics, means);
      request(row_ + Queue::kDepth * step_, slot);
      statistics = next;
      slot = next_slot;
      parity ^= 1;
      dx_row_ += dx_step;
    }
  }

  TIGON_DEVICE void walk_one_by_one() {
    const int64_t dx_step = step_ * args_.dx.stride[0];
    int slot = 0, parity = 0;
    for (int64_t block_row = first_; block_row < rows_; block_row += step_, row_ += step_) {
      compute_row(slot, parity, block_row == first_);
      parity ^= 1;
      slot = (slot + 1) % Queue::kDepth;
      dx_row_ += dx_step;
    }
  }

  TIGON_DEVICE void compute_row(int slot, int parity, bool is_first) {
    Row at;
    at.mine = mine_of(row_);
    at.slot = slot;
    leave_unset(at.x, at.dy);
    Queue::await();
    if constexpr (!kInShared) {
      x_queue_.receive(at.mine, slot, at.x);
      dy_queue_.receive(at.mine, slot, at.dy);
      request(row_ + Queue::kDepth * step_, slot);
    }
    const RowStatistics statistics = next_statistics(row_ + step_);
    float sums[kWidth] = {}, products[kWidth] = {};
    add_resident(at, statistics, sums, products);
    if constexpr (kLongRows) add_tail(statistics, is_first, sums, products);
    const RowSums means =
        means_of(row_sum<kLanes>(RowSums{sum_of(sums), sum_of(products)}, parity));
    store_resident(at, statistics, means);
    if constexpr (kLongRows) store_tail(statistics, means);
    if constexpr (kInShared) request(row_ + Queue::kDepth * step_, slot);
  }

  TIGON_DEVICE RowSums sums_on_chip(Row& at, const RowStatistics& statistics) {
    float sums[kWidth] = {}, products[kWidth] = {};
    add_resident(at, statistics, sums, products);
    return {sum_of(sums), sum_of(products)};
  }
  TIGON_DEVICE void add_resident(Row& at, const RowStatistics& statistics, float (&sums)[kWidth],
                                 float (&products)[kWidth]) {
    for_lane_pieces<kLanes, kPieces>(at.mine, [&](int p) {
      with_piece(p, at, [&](const RowPiece& x, const RowPiece& dy, const RowPiece& w) {
        add_piece<P>(x, dy, w, statistics, sums, products, r_.dw[p], r_.db[p]);
      });
    });
  }
  // The same of the pieces that do not stay on chip, whose dw and db are summed in memory.
  TIGON_DEVICE void add_tail(const RowStatistics& statistics, bool is_first, float (&sums)[kWidth],
                             float (&products)[kWidth]) {
    with_tail([&](const RowPiece& x, const RowPiece& dy, const RowPiece& w, int64_t i) {
      float dw[kWidth] = {}, db[kWidth] = {};
      add_piece<P>(x, dy, w, statistics, sums, products, dw, db);
      add_in_memory(partial_dw_ == nullptr ? nullptr : partial_dw_ + i * kWidth, is_first, dw);
      add_in_memory(partial_db_ == nullptr ? nullptr : partial_db_ + i * kWidth, is_first, db);
    });
  }

  TIGON_DEVICE void store_resident(Row& at, const RowStatistics& statistics, RowSums means) {
    for_lane_pieces<kLanes, kPieces>(at.mine, [&](int p) {
      with_piece(p, at, [&](const RowPiece& x, const RowPiece& dy, const RowPiece& w) {
        store_dx<P>(x, dy, w, statistics, means, dx_row_ + p * kPieceStride<kLanes> * kWidth);
      });
    });
  }
  TIGON_DEVICE void store_tail(const RowStatistics& statistics, RowSums means) {
    with_tail([&](const RowPiece& x, const RowPiece& dy, const RowPiece& w, int64_t i) {
      store_dx<P>(x, dy, w, statistics, means, dx_row_ + (i - piece_) * kWidth);
    });
  }

  // f(x, dy, w) of the thread's p-th piece.
  template <class F>
  TIGON_DEVICE void with_piece(int p, Row& at, const F& f) {
    if constexpr (!kLong) keep_packed(r_.weight[p]);
    if constexpr (kLong) {
      f(x_queue_.at(at.slot, p), dy_queue_.at(at.slot, p),
        load_piece_or<kWidth>(args_.w.data, 1.0f, p * kPieceStride<kLanes> + piece_));
    } else if constexpr (kInShared) {
      f(x_queue_.at(at.slot, p), dy_queue_.at(at.slot, p), r_.weight[p]);
    } else {
      keep_packed(at.x[p]);
      keep_packed(at.dy[p]);
      f(at.x[p], at.dy[p], r_.weight[p]);
    }
  }
  // f(x, dy, w, i) of piece i of those that do not stay on chip.
  template <class F>
  TIGON_DEVICE void with_tail(const F& f) {
    const T* x_row = args_.x.data + row_ * args_.x.stride[0];     // [H]
    const T* dy_row = args_.dy.data + row_ * args_.dy.stride[0];  // [H]
    for (int64_t i = kOnChip + piece_; i < pieces_; i += kLanes)
      if (row_ < rows_)
        f(load_piece<kWidth>(x_row + i * kWidth), load_piece<kWidth>(dy_row + i * kWidth),
          load_piece_or<kWidth>(args_.w.data, 1.0f, i), i);
  }

  // Requests the thread's pieces of a row.
  TIGON_DEVICE void request(int64_t row, int slot) {
    const int mine = mine_of(row);
    x_queue_.request(mine, slot);
    dy_queue_.request(mine, slot);
    Queue::close();
    if (kLong && !kLongRows && piece_ == 0) norm::prefetch_rows(row + step_, args_.x, args_.dy);
  }
  // The thread has its p-th piece of a row on chip if p * kPieceStride < mine_of(row).
  TIGON_DEVICE int mine_of(int64_t row) const { return row < rows_ ? resident_ : 0; }
  // Returns the statistics of the row at hand, and reads those of row `after`.
  TIGON_DEVICE RowStatistics next_statistics(int64_t after) {
    const RowStatistics statistics = {next_mean_, next_rstd_, -next_mean_ * next_rstd_};
    next_mean_ = load_statistic(args_.mean, after);
    next_rstd_ = load_statistic(args_.rstd, after);
    return statistics;
  }
  template <class View>
  TIGON_DEVICE float load_statistic(const View& statistic, int64_t row) const {
    return row < rows_ ? load(statistic.data + row) : 0.0f;
  }
  TIGON_DEVICE RowSums means_of(const RowSums& sums) const {
    RowSums means = {sums.m * inverse_h_, sums.product * inverse_h_};
    return means;
  }

  static constexpr int kOnChip = kLanes * kPieces;  // pieces of a row

  const Backward<P>& args_;
  float *const partial_dw_, *const partial_db_;
  Queue &x_queue_, &dy_queue_;
  Registers& r_;
  const int piece_ =  // the thread's first; see first_piece()
      is_fitted(kLanes) ? first_piece<kLanes, kPieces>() : threadIdx.x % kLanes;
  const int64_t rows_ = args_.x.shape[0], pieces_ = args_.x.shape[1] / kWidth;
  const int64_t step_ = Queue::step(), first_ = int64_t{blockIdx.x} * kRowsPerBlock<kLanes>;
  const float inverse_h_ = 1.0f / static_cast<float>(args_.x.shape[1]);
  const int resident_ = static_cast<int>(pieces_ < kOnChip ? pieces_ : kOnChip) - piece_;
  int64_t row_ = Queue::first_row();
  float next_mean_ = 0.0f, next_rstd_ = 0.0f;
  T* dx_row_ = nullptr;  // of row_, from the thread's first piece on
};

// partial_dw, partial_db: [gridDim.x, H], or null where the sum is not wanted. kLongRows: rows may
// be longer than registers hold; there is one row per block then, and the columns behind sum dw and
// db in memory. dx may be dy's memory.
template <class P, int kWidth, int kLanes, int kPieces, int kBlocksPerSm, int kStages,
          bool kLongRows>
TIGON_KERNEL(kRowThreads<kLanes>, kBlocksPerSm)
backward_kernel(Backward<P> args, float* partial_dw, float* partial_db) {
  using Walk = BackwardWalk<P, kWidth, kLanes, kPieces, kStages, kLongRows>;
  using Queue = typename Walk::Queue;
  const int64_t h = args.x.shape[1];
  if (partial_dw != nullptr) partial_dw += blockIdx.x * h;
  if (partial_db != nullptr) partial_db += blockIdx.x * h;
  TIGON_DYNAMIC_SHARED(Vec<typename P::Elem>, slots);
  Queue x_queue(slots, args.x.data, args.x.stride[0]);
  Queue dy_queue(slots + Queue::kVectors * (is_fitted(kLanes) ? blockDim.x / 32 : 1), args.dy.data,
                 args.dy.stride[0]);
  typename Walk::Registers registers;
  Walk(args, partial_dw, partial_db, x_queue, dy_queue, registers).walk();
}

}  // namespace tigon::layer_norm
