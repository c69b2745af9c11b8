// SPDX-License-Identifier: Apache-2.0
// Backward of rms_norm, and of add_rms_norm, which adds the gradient of the residual stream:
//
//   dx = rstd * (m - x * rstd^2 * mean_H(m * x)),  m = dy * (offset + w),  dw = sum_T dy * x * rstd
//
// A fixed grid walks over the rows. x and dy are read once and stay on chip: in registers, or in
// shared memory where registers are short. The next rows are in flight meanwhile (row_queue.h).
// Each thread sums dw of its columns in registers, every block writes one row of partial sums to
// scratch, and a second kernel adds those in a fixed order: no atomics, the same bits every time.
#pragma once
#include "kernels/norm/column_sums.h"
#include "kernels/norm/lane_share.h"
#include "kernels/norm/row_queue.h"
#include "kernels/norm/rows_ahead.h"
#include "kernels/norm/weight.h"

namespace tigon::norm {

// dx of a piece; pull = rstd^2 * mean_H(m * x).
template <class Args, int kWidth>
TIGON_DEVICE void gradient(const Args& args, const Piece<typename Args::Elem, kWidth>& x_piece,
                           const Piece<typename Args::Elem, kWidth>& dy_piece,
                           const Piece<typename Args::Elem, kWidth>& w, float rstd, float pull,
                           float (&dx)[kWidth]) {
  float x[kWidth];
  unpack_piece(x_piece, x);
  unpack_piece(dy_piece, dx);
  multiply_weight(args, w, dx);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) dx[j] = rstd * (dx[j] - x[j] * pull);
}

// A thread's arrays in registers. Its counters are in another object: nvcc leaves an object with
// arrays in memory until it unrolls loops, and until then optimises its other members less.
template <class T, int kWidth, int kPieces, int kRowPieces>
struct BackwardRegisters {
  Piece<T, kWidth> x[kRowPieces] = {}, dy[kRowPieces] = {}, weight[kPieces] = {};
  float dw[kPieces][kWidth] = {};
};

// The walk of backward_rows(), of one thread.
template <int kWidth, int kLanes, int kPieces, int kStages, bool kLongRows, class Args,
          class Upstream>
class BackwardRows {
  using T = typename Args::Elem;
  using RowPiece = Piece<T, kWidth>;
  static constexpr bool kCopies = RowQueue<T, kWidth, kLanes, kPieces, kStages>::kCopies;
  static constexpr bool kInShared = kCopies && Upstream::kRowInShared;
  // Where more than a warp takes a row to registers, each row's addresses are computed from its
  // number. Pointers that advance from row to row take fewer instructions and are slower here; the
  // cause is not known. Other kernels are faster with pointers.
  static constexpr bool kAddressPerRow = kCopies && !Upstream::kRowInShared && kLanes > 32;

 public:
  using Queue = RowQueue<T, kWidth, kLanes, kPieces, kStages>;
  using Share = LaneShare<kWidth, kLanes, kPieces, kAddressPerRow>;
  using Registers = BackwardRegisters<T, kWidth, kPieces, kInShared ? 1 : kPieces>;

  // partial: [H], the block's.
  TIGON_DEVICE BackwardRows(const Args& args, float* partial, const Share& share, Queue& x_queue,
                            Queue& dy_queue, Upstream& upstream, Registers& registers)
      : args_(args),
        partial_(partial),
        share_(share),
        x_queue_(x_queue),
        dy_queue_(dy_queue),
        upstream_(upstream),
        r_(registers),
        row_(Queue::first_row()) {}

  TIGON_DEVICE void walk() {
    dependency_launch();
    TIGON_UNROLL
    for (int ahead = 0; ahead < Queue::kDepth; ++ahead) request(row_ + ahead * share_.step, ahead);
    next_rstd_ = load_rstd(row_);
    load_lane_pieces<kWidth, kLanes>(args_.w.data, share_.h, share_.piece, r_.weight);
    dx_row_ = args_.dx.data + row_ * args_.dx.stride[0] + dx_piece() * kWidth;
    const int64_t dx_step = share_.step * args_.dx.stride[0];
    int slot = 0, parity = 0;
    // All rows of the block together: the last ones of a warp may be missing, not the warp.
    for (int64_t block_row = share_.first; block_row < share_.rows; block_row += share_.step) {
      compute_row(slot, parity, block_row == share_.first);
      slot = (slot + 1) % Queue::kDepth;
      parity ^= 1;
      row_ += share_.step;
      dx_row_ += dx_step;
    }
    if (partial_ != nullptr) store_partial<kLanes>(r_.dw, share_.pieces, partial_);
  }

 private:
  using Count = typename Share::Count;

  TIGON_DEVICE void compute_row(int slot, int parity, bool is_first) {
    const Count count = share_.count(row_);
    const float rstd = next_rstd_;
    Queue::await();
    receive(count, slot);
    upstream_.start(row_);
    if constexpr (!kInShared) request(row_ + Queue::kDepth * share_.step, slot);
    next_rstd_ = load_rstd(row_ + share_.step);
    if constexpr (kAddressPerRow) dx_row_ = args_.dx.data + row_ * args_.dx.stride[0];

    float dots[kWidth] = {};
    add_resident(count, slot, rstd, dots);
    if constexpr (kLongRows) add_tail(rstd, is_first, dots);
    float mean = row_sum<kLanes>(sum_of(dots), parity) / static_cast<float>(share_.h);
    const float pull = rstd * mean * rstd;
    store_resident(count, slot, rstd, pull);
    if constexpr (kLongRows) store_tail(rstd, pull);
    if constexpr (kInShared) request(row_ + Queue::kDepth * share_.step, slot);
  }

  // Adds m * x of the pieces on chip to `dots`, and dy * x * rstd to dw.
  TIGON_DEVICE void add_resident(Count count, int slot, float rstd, float (&dots)[kWidth]) {
    share_.for_each(count, [&](int p) {
      float x[kWidth], dy[kWidth];
      unpack_piece(piece(x_queue_, r_.x, slot, p), x);
      unpack_piece(piece(dy_queue_, r_.dy, slot, p), dy);
      TIGON_UNROLL
      for (int j = 0; j < kWidth; ++j) r_.dw[p][j] += dy[j] * (x[j] * rstd);
      keep_packed(r_.weight[p]);
      multiply_weight(args_, r_.weight[p], dy);
      add_products(dy, x, dots);
    });
  }
  // The same of the row's other pieces, whose dw is summed in `partial`.
  TIGON_DEVICE void add_tail(float rstd, bool is_first, float (&dots)[kWidth]) {
    const T *const x_row = row_of(args_.x), *const dy_row = row_of(args_.dy);  // [H]
    share_.for_tail(row_, [&](int64_t i) {
      float x[kWidth], dy[kWidth];
      unpack_piece(load_piece<kWidth>(x_row + i * kWidth), x);
      unpack_piece(load_piece<kWidth>(dy_row + i * kWidth), dy);
      for (int j = 0; j < kWidth && partial_ != nullptr; ++j) {
        float* sum = partial_ + i * kWidth + j;
        store(sum, (is_first ? 0.0f : load(sum)) + dy[j] * (x[j] * rstd));
      }
      multiply_weight(args_, load_if_given<kWidth>(args_.w.data, i), dy);
      add_products(dy, x, dots);
    });
  }

  TIGON_DEVICE void store_resident(Count count, int slot, float rstd, float pull) {
    share_.for_each(count, [&](int p) {
      float dx[kWidth];
      keep_packed(r_.weight[p]);
      gradient(args_, piece(x_queue_, r_.x, slot, p), piece(dy_queue_, r_.dy, slot, p),
               r_.weight[p], rstd, pull, dx);
      upstream_.add(p, slot, dx);
      store_piece(dx_row_ + (p * kPieceStride<kLanes> + share_.piece - dx_piece()) * kWidth, dx);
    });
  }
  TIGON_DEVICE void store_tail(float rstd, float pull) {
    const T *const x_row = row_of(args_.x), *const dy_row = row_of(args_.dy);  // [H]
    share_.for_tail(row_, [&](int64_t i) {
      float dx[kWidth];
      gradient(args_, load_piece<kWidth>(x_row + i * kWidth),
               load_piece<kWidth>(dy_row + i * kWidth), load_if_given<kWidth>(args_.w.data, i),
               rstd, pull, dx);
      upstream_.add_at(i, dx);
      store_piece(dx_row_ + (i - dx_piece()) * kWidth, dx);
    });
  }

  // Requests the thread's pieces of a row.
  TIGON_DEVICE void request(int64_t row, int slot) {
    const Count count = share_.count(row);
    if constexpr (kAddressPerRow) {
      request_at(x_queue_, args_.x, row, slot);
      request_at(dy_queue_, args_.dy, row, slot);
    } else {
      x_queue_.request(count, slot);
      dy_queue_.request(count, slot);
    }
    upstream_.request(count, slot);
    Queue::close();
    if (kAddressPerRow && !kLongRows && is_long({kLanes, kPieces, 1}) && share_.piece == 0)
      prefetch_rows(row + share_.step, args_.x, args_.dy);
  }
  template <class View>
  TIGON_DEVICE void request_at(Queue& queue, const View& view, int64_t row, int slot) {
    const T* const from = view.data + row * view.stride[0];
    share_.for_each(row < view.shape[0] ? view.shape[1] / kWidth : 0, [&](int p) {
      queue.request_piece(from + (p * kPieceStride<kLanes> + share_.piece) * kWidth, p, slot);
    });
  }
  // Takes the row that has landed to registers, unless it stays in shared memory.
  TIGON_DEVICE void receive(Count count, int slot) {
    if constexpr (!kInShared) {
      share_.for_each(count, [&](int p) { r_.x[p] = x_queue_.received(slot, p); });
      share_.for_each(count, [&](int p) { r_.dy[p] = dy_queue_.received(slot, p); });
    }
  }
  // The thread's p-th piece of the row.
  TIGON_DEVICE RowPiece piece(const Queue& queue, RowPiece* in_registers, int slot, int p) const {
    if constexpr (kInShared) {
      return queue.at(slot, p);
    } else {
      keep_packed(in_registers[p]);
      return in_registers[p];
    }
  }
  template <class View>
  TIGON_DEVICE const T* row_of(const View& view) const {
    return view.data + row_ * view.stride[0];
  }
  TIGON_DEVICE float load_rstd(int64_t row) const {
    return row < share_.rows ? load(args_.rstd.data + row) : 0.0f;
  }
  // The piece that dx_row_ points to.
  TIGON_DEVICE int dx_piece() const { return kAddressPerRow ? 0 : share_.piece; }

  const Args& args_;
  float* const partial_;
  const Share& share_;
  Queue &x_queue_, &dy_queue_;
  Upstream& upstream_;
  Registers& r_;
  int64_t row_;
  float next_rstd_ = 0.0f;
  T* dx_row_ = nullptr;
};

// Args are rms_norm::Backward or have its members; dx may be dy's memory. partials: [gridDim.x, H],
// or null if there is no dw. kLongRows: rows may be longer than registers hold; there is one row
// per block then, and the columns behind sum dw in `partials`. slots: shared memory of two queues
// of kStages rows. `upstream` is what else has a gradient for the row:
//   kRowInShared              x and dy stay where they landed in shared memory
//   request(count, slot)      requests its part of the next row, as RowQueue does
//   start(row)                starts to read this row
//   add(p, slot, dx)          adds the thread's p-th piece
//   add_at(i, dx)             adds a piece that does not stay on chip
template <int kWidth, int kLanes, int kPieces, int kStages, bool kLongRows, class Args,
          class Upstream>
TIGON_DEVICE void backward_rows(const Args& args, float* partials, Vec<typename Args::Elem>* slots,
                                Upstream upstream) {
  using Rows = BackwardRows<kWidth, kLanes, kPieces, kStages, kLongRows, Args, Upstream>;
  using Queue = typename Rows::Queue;
  const typename Rows::Share share(args.x.shape[0], args.x.shape[1]);
  float* partial = partials == nullptr ? nullptr : partials + blockIdx.x * share.h;  // [H]
  Queue x_queue(slots, args.x.data, args.x.stride[0]);
  Queue dy_queue(slots + Queue::kVectors * (is_fitted(kLanes) ? blockDim.x / 32 : 1), args.dy.data,
                 args.dy.stride[0]);
  typename Rows::Registers registers;
  Rows(args, partial, share, x_queue, dy_queue, upstream, registers).walk();
}

}  // namespace tigon::norm
