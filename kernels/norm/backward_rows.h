// Backward of rms_norm, and of add_rms_norm, which adds the gradient of the residual stream:
//
//   dx = rstd * (m - x * rstd^2 * mean_H(m * x)),  m = dy * (offset + w),  dw = sum_T dy * x * rstd
//
// A fixed grid walks over the rows. x and dy are read once and stay on chip: in registers, or in
// shared memory where registers are short. The next rows are in flight meanwhile (row_queue.h).
// Each thread sums dw of its columns in registers, every block writes one row of partial sums to
// scratch, and a second kernel adds those in a fixed order: no atomics, the same bits every time.
#pragma once
#include "kernels/device/column_sums.h"
#include "kernels/device/row_queue.h"
#include "kernels/device/rows_ahead.h"
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

// Args are rms_norm::Backward or have its members; dx may be dy's memory. partials: [gridDim.x, H],
// or null if there is no dw. kLongRows: rows may be longer than registers hold; there is one row
// per block then, and the columns behind sum dw in `partials`. slots: shared memory of two queues
// of kStages rows. `upstream` is what else has a gradient for the row:
//   kRowInShared                x and dy stay where they landed in shared memory
//   request(mine, slot)       requests its part of the next row, as RowQueue does
//   start(row, lane)          starts to read this row
//   add(i, p, slot, dx)       adds piece i, the thread's p-th
//   add_at(i, dx)             adds a piece that registers do not hold
template <int kWidth, int kLanes, int kPieces, int kStages, bool kLongRows, class Args,
          class Upstream>
TIGON_DEVICE void backward_rows(const Args& args, float* partials, Vec<typename Args::Elem>* slots,
                                Upstream upstream) {
  using T = typename Args::Elem;
  constexpr int kInRegisters = kLanes * kPieces;
  using Queue = RowQueue<T, kWidth, kLanes, kPieces, kStages>;
  const int lane = threadIdx.x % kLanes;
  const int64_t rows = args.x.shape[0], h = args.x.shape[1], pieces = h / kWidth;
  const int64_t step = Queue::step(), first = int64_t{blockIdx.x} * kRowsPerBlock<kLanes>;
  float* partial = partials == nullptr ? nullptr : partials + blockIdx.x * h;  // [H]

  // Where a row goes to the registers of more than a warp, every row's addresses are computed from
  // its number: slower with pointers that advance from row to row, though these take fewer
  // instructions. The cause is not known; other kernels are faster with pointers.
  constexpr bool kAddressPerRow = Queue::kCopies && !Upstream::kRowInShared && kLanes > 32;
  // What the thread has of a row: its p-th piece if p * kLanes < mine.
  const int kept = static_cast<int>(pieces < kInRegisters ? pieces : kInRegisters) - lane;
  const auto mine_of = [&](int64_t of) {
    if constexpr (kAddressPerRow)
      return of < rows ? pieces : 0;  // of the whole row
    else
      return of < rows ? kept : 0;
  };
  const auto for_mine = [&](auto mine, const auto& f) {
    if constexpr (kAddressPerRow) {
      TIGON_UNROLL
      for (int p = 0; p < kPieces; ++p)
        if (p * kLanes + lane < mine) f(p);
    } else {
      for_lane_pieces<kLanes, kPieces>(mine, f);
    }
  };
  const auto request_row = [&](Queue& queue, const auto& view, int64_t of, int slot) {
    const T* const from = view.data + of * view.stride[0];
    for_mine(of < view.shape[0] ? view.shape[1] / kWidth : 0,
             [&](int p) { queue.request_piece(from + (p * kLanes + lane) * kWidth, p, slot); });
  };
  Queue x_queue(slots, args.x.data, args.x.stride[0]);
  Queue dy_queue(slots + Queue::kVectors, args.dy.data, args.dy.stride[0]);
  const auto request = [&](int64_t next, int slot) {
    const auto mine = mine_of(next);
    if constexpr (kAddressPerRow) {
      request_row(x_queue, args.x, next, slot);
      request_row(dy_queue, args.dy, next, slot);
    } else {
      x_queue.request(mine, slot);
      dy_queue.request(mine, slot);
    }
    upstream.request(mine, slot);
    Queue::close();
    if (kAddressPerRow && !kLongRows && is_long({kLanes, kPieces, 1}) && lane == 0)
      prefetch_rows(next + step, args.x, args.dy);
  };
  int64_t row = Queue::first_row();
  const auto load_rstd = [&](int64_t of) { return of < rows ? load(args.rstd.data + of) : 0.0f; };
  dependency_launch();
  TIGON_UNROLL
  for (int ahead = 0; ahead < Queue::kDepth; ++ahead) request(row + ahead * step, ahead);
  float next_rstd = load_rstd(row);
  constexpr bool kInShared = Queue::kCopies && Upstream::kRowInShared;
  Piece<T, kWidth> kept_x[kInShared ? 1 : kPieces] = {}, kept_dy[kInShared ? 1 : kPieces] = {};
  Piece<T, kWidth> weight[kPieces] = {};
  load_lane_pieces<kWidth, kLanes>(args.w.data, h, lane, weight);
  float dw[kPieces][kWidth] = {}, x[kWidth], dy[kWidth], dx[kWidth];

  // All rows of the block together: the last ones of a warp may be missing, not the warp.
  int slot = 0, parity = 0;
  const int before = kAddressPerRow ? 0 : lane,
            behind = lane - before;  // pieces in dx_row, and added to it
  T* dx_row = args.dx.data + row * args.dx.stride[0] + before * kWidth;
  const int64_t dx_step = step * args.dx.stride[0];
  for (int64_t block_row = first; block_row < rows; block_row += step, row += step) {
    const auto mine = mine_of(row);
    const int64_t end = row < rows ? pieces : 0;
    const float rstd = next_rstd;
    Queue::await();
    if constexpr (!kInShared) {
      for_mine(mine, [&](int p) { kept_x[p] = x_queue.received(slot, p); });
      for_mine(mine, [&](int p) { kept_dy[p] = dy_queue.received(slot, p); });
    }
    upstream.start(row, lane);
    if constexpr (!kInShared) request(row + Queue::kDepth * step, slot);
    next_rstd = load_rstd(row + step);
    // The thread's p-th piece.
    const auto piece = [&](const Queue& queue, Piece<T, kWidth>* kept, int p) {
      if constexpr (kInShared) return queue.at(slot, p);
      keep_packed(kept[p]);
      return kept[p];
    };
    const T* x_row = args.x.data + row * args.x.stride[0];     // [H]
    const T* dy_row = args.dy.data + row * args.dy.stride[0];  // [H]
    if constexpr (kAddressPerRow) dx_row = args.dx.data + row * args.dx.stride[0];

    float dots[kWidth] = {};
    for_mine(mine, [&](int p) {
      unpack_piece(piece(x_queue, kept_x, p), x);
      unpack_piece(piece(dy_queue, kept_dy, p), dy);
      TIGON_UNROLL
      for (int j = 0; j < kWidth; ++j) dw[p][j] += dy[j] * (x[j] * rstd);
      keep_packed(weight[p]);
      multiply_weight(args, weight[p], dy);
      add_products(dy, x, dots);
    });
    if constexpr (kLongRows)
      for (int64_t i = kInRegisters + lane; i < end; i += kLanes) {
        unpack_piece(load_piece<kWidth>(x_row + i * kWidth), x);
        unpack_piece(load_piece<kWidth>(dy_row + i * kWidth), dy);
        for (int j = 0; j < kWidth && partial != nullptr; ++j) {
          float* sum = partial + i * kWidth + j;
          store(sum, (block_row == first ? 0.0f : load(sum)) + dy[j] * (x[j] * rstd));
        }
        multiply_weight(args, load_if_given<kWidth>(args.w.data, i), dy);
        add_products(dy, x, dots);
      }
    float mean = row_sum<kLanes>(sum_of(dots), parity) / static_cast<float>(h);
    parity ^= 1;
    const float pull = rstd * mean * rstd;

    for_mine(mine, [&](int p) {
      keep_packed(weight[p]);
      gradient(args, piece(x_queue, kept_x, p), piece(dy_queue, kept_dy, p), weight[p], rstd, pull,
               dx);
      upstream.add(p * kLanes + lane, p, slot, dx);
      store_piece(dx_row + (p * kLanes + behind) * kWidth, dx);
    });
    if constexpr (kLongRows)
      for (int64_t i = kInRegisters + lane; i < end; i += kLanes) {
        gradient(args, load_piece<kWidth>(x_row + i * kWidth),
                 load_piece<kWidth>(dy_row + i * kWidth), load_if_given<kWidth>(args.w.data, i),
                 rstd, pull, dx);
        upstream.add_at(i, dx);
        store_piece(dx_row + (i - before) * kWidth, dx);
      }
    if constexpr (kInShared) request(row + Queue::kDepth * step, slot);
    slot = (slot + 1) % Queue::kDepth;
    dx_row += dx_step;
  }
  if (partial != nullptr) store_partial<kLanes>(dw, pieces, partial);
}

}  // namespace tigon::norm
