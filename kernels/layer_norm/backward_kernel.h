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
#include "kernels/norm/lane_share.h"

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

// What a thread has in registers, apart from its counters: see norm::BackwardRegisters.
template <class T, int kWidth, int kPieces, int kWeights>
struct BackwardRegisters {
  Piece<T, kWidth> weight[kWeights] = {};
  float dw[kPieces][kWidth] = {}, db[kPieces][kWidth] = {};
};

// A row that is worked on: where it landed, or in registers.
template <class T, int kWidth, int kPieces>
struct LandedRow {
  int count, slot;  // count: as LaneShare has it
  Piece<T, kWidth> x[kPieces], dy[kPieces];
};

// The walk of backward_kernel(), of one thread.
template <class P, int kWidth, int kLanes, int kPieces, int kStages, bool kLongRows>
class BackwardRows {
  using T = typename P::Elem;
  using RowPiece = Piece<T, kWidth>;
  static constexpr bool kCopies = RowQueue<T, kWidth, kLanes, kPieces, kStages>::kCopies;
  static constexpr bool kInShared = kCopies && kLanes > 32;  // where the rows landed
  // Leaves registers for the sums only: the weight is read again for every row.
  static constexpr bool kLong = kInShared && kPieces >= 4;

 public:
  using Queue = RowQueue<T, kWidth, kLanes, kPieces, kStages>;
  using Share = norm::LaneShare<kWidth, kLanes, kPieces, false>;
  using Registers = BackwardRegisters<T, kWidth, kPieces, kLong ? 1 : kPieces>;

  // partial_dw, partial_db: [H], the block's.
  TIGON_DEVICE BackwardRows(const Backward<P>& args, float* partial_dw, float* partial_db,
                            const Share& share, Queue& x_queue, Queue& dy_queue,
                            Registers& registers)
      : args_(args),
        inverse_h_(1.0f / static_cast<float>(share.h)),
        partial_dw_(partial_dw),
        partial_db_(partial_db),
        share_(share),
        x_queue_(x_queue),
        dy_queue_(dy_queue),
        r_(registers),
        row_(Queue::first_row()) {}

  TIGON_DEVICE void walk() {
    dependency_launch();
    TIGON_UNROLL
    for (int ahead = 0; ahead < Queue::kDepth; ++ahead) request(row_ + ahead * share_.step, ahead);
    next_mean_ = load_statistic(args_.mean, row_);
    next_rstd_ = load_statistic(args_.rstd, row_);
    if constexpr (!kLong)
      load_pieces_or<kWidth, kLanes>(args_.w.data, 1.0f, share_.lane, share_.resident, r_.weight);
    dx_row_ = args_.dx.data + row_ * args_.dx.stride[0] + share_.lane * kWidth;
    dx_step_ = share_.step * args_.dx.stride[0];
    if constexpr (kInShared && !kLongRows && kStages > 2)
      walk_overlapped();
    else
      walk_one_by_one();
    if (partial_dw_ != nullptr) store_partial<kLanes>(r_.dw, share_.pieces, partial_dw_);
    if (partial_db_ != nullptr) store_partial<kLanes>(r_.db, share_.pieces, partial_db_);
  }

 private:
  using Row = LandedRow<T, kWidth, kInShared ? 1 : kPieces>;

  // While the sums of a row are on their way, those of the next are added up.
  TIGON_DEVICE void walk_overlapped() {
    TIGON_SHARED(RowSums, warp_sums, [2][kLanes / 32]);
    SteppedRowSum<kLanes, RowSums> row_sums(warp_sums);
    const auto post = [&](int64_t row, int slot, const RowStatistics& statistics, int parity) {
      float sums[kWidth] = {}, products[kWidth] = {};
      Row at = {share_.count(row), slot, {}, {}};
      add_resident(at, statistics, sums, products);
      row_sums.post({sum_of(sums), sum_of(products)}, parity);
    };
    Queue::await();
    RowStatistics statistics = next_statistics(row_ + share_.step);
    post(row_, 0, statistics, 0);
    int slot = 0, parity = 0;
    for (; row_ < share_.rows; row_ += share_.step) {
      const int next_slot = (slot + 1) % Queue::kDepth;
      const RowSums means = means_of(row_sums.collect(parity));
      const RowStatistics next = next_statistics(row_ + 2 * share_.step);
      Queue::template await<1>();
      post(row_ + share_.step, next_slot, next, parity ^ 1);
      Row at = {share_.count(row_), slot, {}, {}};
      store_resident(at, statistics, means);
      request(row_ + Queue::kDepth * share_.step, slot);
      statistics = next;
      slot = next_slot;
      parity ^= 1;
      dx_row_ += dx_step_;
    }
  }

  TIGON_DEVICE void walk_one_by_one() {
    int slot = 0, parity = 0;
    // All rows of the block together: the last ones of a warp may be missing, not the warp.
    for (int64_t block_row = share_.first; block_row < share_.rows; block_row += share_.step) {
      compute_row(slot, parity, block_row == share_.first);
      parity ^= 1;
      slot = (slot + 1) % Queue::kDepth;
      row_ += share_.step;
      dx_row_ += dx_step_;
    }
  }
  TIGON_DEVICE void compute_row(int slot, int parity, bool is_first) {
    Row at;
    at.count = share_.count(row_);
    at.slot = slot;
    leave_unset(at.x);
    leave_unset(at.dy);
    Queue::await();
    if constexpr (!kInShared) {
      x_queue_.receive(at.count, slot, at.x);
      dy_queue_.receive(at.count, slot, at.dy);
      request(row_ + Queue::kDepth * share_.step, slot);
    }
    const RowStatistics statistics = next_statistics(row_ + share_.step);
    float sums[kWidth] = {}, products[kWidth] = {};
    add_resident(at, statistics, sums, products);
    if constexpr (kLongRows) add_tail(statistics, is_first, sums, products);
    const RowSums means =
        means_of(row_sum<kLanes>(RowSums{sum_of(sums), sum_of(products)}, parity));
    store_resident(at, statistics, means);
    if constexpr (kLongRows) store_tail(statistics, means);
    if constexpr (kInShared) request(row_ + Queue::kDepth * share_.step, slot);
  }

  // The pieces on chip: their terms of all sums.
  TIGON_DEVICE void add_resident(Row& at, const RowStatistics& statistics, float (&sums)[kWidth],
                                 float (&products)[kWidth]) {
    share_.for_each(at.count, [&](int p) {
      with_piece(p, at, [&](const RowPiece& x, const RowPiece& dy, const RowPiece& w) {
        add_piece<P>(x, dy, w, statistics, sums, products, r_.dw[p], r_.db[p]);
      });
    });
  }
  // The row's other pieces, whose dw and db are summed in memory.
  TIGON_DEVICE void add_tail(const RowStatistics& statistics, bool is_first, float (&sums)[kWidth],
                             float (&products)[kWidth]) {
    for_tail([&](const RowPiece& x, const RowPiece& dy, const RowPiece& w, int64_t i) {
      float dw_terms[kWidth] = {}, db_terms[kWidth] = {};
      add_piece<P>(x, dy, w, statistics, sums, products, dw_terms, db_terms);
      add_in_memory(partial_dw_ == nullptr ? nullptr : partial_dw_ + i * kWidth, is_first,
                    dw_terms);
      add_in_memory(partial_db_ == nullptr ? nullptr : partial_db_ + i * kWidth, is_first,
                    db_terms);
    });
  }
  TIGON_DEVICE void store_resident(Row& at, const RowStatistics& statistics, RowSums means) {
    share_.for_each(at.count, [&](int p) {
      with_piece(p, at, [&](const RowPiece& x, const RowPiece& dy, const RowPiece& w) {
        store_dx<P>(x, dy, w, statistics, means, dx_row_ + p * kLanes * kWidth);
      });
    });
  }
  TIGON_DEVICE void store_tail(const RowStatistics& statistics, RowSums means) {
    for_tail([&](const RowPiece& x, const RowPiece& dy, const RowPiece& w, int64_t i) {
      store_dx<P>(x, dy, w, statistics, means, dx_row_ + (i - share_.lane) * kWidth);
    });
  }

  // f(x, dy, w) of the thread's p-th piece.
  template <class F>
  TIGON_DEVICE void with_piece(int p, Row& at, const F& f) {
    if constexpr (!kLong) keep_packed(r_.weight[p]);
    if constexpr (kLong) {
      f(x_queue_.at(at.slot, p), dy_queue_.at(at.slot, p),
        load_piece_or<kWidth>(args_.w.data, 1.0f, p * kLanes + share_.lane));
    } else if constexpr (kInShared) {
      f(x_queue_.at(at.slot, p), dy_queue_.at(at.slot, p), r_.weight[p]);
    } else {
      keep_packed(at.x[p]);
      keep_packed(at.dy[p]);
      f(at.x[p], at.dy[p], r_.weight[p]);
    }
  }
  // f(x, dy, w, i) of each piece i of the thread that does not stay on chip.
  template <class F>
  TIGON_DEVICE void for_tail(const F& f) const {
    const T* x_row = args_.x.data + row_ * args_.x.stride[0];     // [H]
    const T* dy_row = args_.dy.data + row_ * args_.dy.stride[0];  // [H]
    for (int64_t i = Share::kResident + share_.lane; i < share_.pieces; i += kLanes)
      if (row_ < share_.rows)
        f(load_piece<kWidth>(x_row + i * kWidth), load_piece<kWidth>(dy_row + i * kWidth),
          load_piece_or<kWidth>(args_.w.data, 1.0f, i), i);
  }

  TIGON_DEVICE RowSums means_of(const RowSums& sums) const {
    RowSums means = {sums.m * inverse_h_, sums.product * inverse_h_};
    return means;
  }
  // Those of the row whose turn it is; reads those of row `after`.
  TIGON_DEVICE RowStatistics next_statistics(int64_t after) {
    const RowStatistics statistics = {next_mean_, next_rstd_, -next_mean_ * next_rstd_};
    next_mean_ = load_statistic(args_.mean, after);
    next_rstd_ = load_statistic(args_.rstd, after);
    return statistics;
  }
  template <class Statistic>
  TIGON_DEVICE float load_statistic(const Statistic& statistic, int64_t row) const {
    return row < share_.rows ? load(statistic.data + row) : 0.0f;
  }
  TIGON_DEVICE void request(int64_t row, int slot) {
    const int count = share_.count(row);
    x_queue_.request(count, slot);
    dy_queue_.request(count, slot);
    Queue::close();
    if (kLong && !kLongRows && share_.lane == 0)
      prefetch_rows(row + share_.step, args_.x, args_.dy);
  }

  const Backward<P>& args_;
  const float inverse_h_;
  float *const partial_dw_, *const partial_db_;
  const Share& share_;
  Queue &x_queue_, &dy_queue_;
  Registers& r_;
  int64_t row_;
  float next_mean_ = 0.0f, next_rstd_ = 0.0f;
  T* dx_row_ = nullptr;  // the thread's first piece of it
  int64_t dx_step_ = 0;
};

// partial_dw, partial_db: [gridDim.x, H], or null where the sum is not wanted. kLongRows: rows may
// be longer than registers hold; there is one row per block then, and the columns behind sum dw and
// db in memory. dx may be dy's memory.
template <class P, int kWidth, int kLanes, int kPieces, int kBlocksPerSm, int kStages,
          bool kLongRows>
TIGON_KERNEL(kRowThreads<kLanes>, kBlocksPerSm)
backward_kernel(Backward<P> args, float* partial_dw, float* partial_db) {
  using Rows = BackwardRows<P, kWidth, kLanes, kPieces, kStages, kLongRows>;
  using Queue = typename Rows::Queue;
  const typename Rows::Share share(args.x.shape[0], args.x.shape[1]);
  if (partial_dw != nullptr) partial_dw += blockIdx.x * share.h;
  if (partial_db != nullptr) partial_db += blockIdx.x * share.h;
  TIGON_DYNAMIC_SHARED(Vec<typename P::Elem>, slots);
  Queue x_queue(slots, args.x.data, args.x.stride[0]);
  Queue dy_queue(slots + Queue::kVectors, args.dy.data, args.dy.stride[0]);
  typename Rows::Registers registers;
  Rows(args, partial_dw, partial_db, share, x_queue, dy_queue, registers).walk();
}

}  // namespace tigon::layer_norm
