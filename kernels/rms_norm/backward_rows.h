// What a backward kernel that normalises rows does with those of a block: rms_norm's, and
// add_rms_norm's, which adds the gradient of the residual stream.
//
//   dx = rstd * (m - x * rstd^2 * mean_H(m * x)),  m = dy * (offset + w),  dw = sum_T dy * x * rstd
//
// A fixed grid walks over the rows; x and dy are read once and kept in registers, the next rows are
// read while these are worked on. Each thread sums dw of its columns in registers, every block
// writes one row of partial sums to scratch, and a second kernel adds those in a fixed order: no
// atomics, the same bits every time.
#pragma once
#include "kernels/device/column_sums.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rms_norm/row.h"

namespace tigon::rms_norm {

// With more lanes, 128 registers per thread are no room for another row and the weights.
inline constexpr int kAheadLanes = 256;

// The part of a row that a thread keeps, as stored.
template <class T, int kWidth, int kPieces>
struct KeptRow {
  Piece<T, kWidth> x[kPieces], dy[kPieces];
  float rstd;
};

template <int kLanes, class P, int kWidth, int kPieces>
TIGON_DEVICE void load_row(const Backward<P>& args, int64_t row, int lane,
                           KeptRow<typename P::Elem, kWidth, kPieces>& kept) {
  const auto* x = args.x.data + row * args.x.stride[0];     // [H]
  const auto* dy = args.dy.data + row * args.dy.stride[0];  // [H]
  TIGON_UNROLL
  for (int p = 0; p < kPieces; ++p)
    if (const int i = p * kLanes + lane; i < args.x.shape[1] / kWidth) {
      kept.x[p] = load_piece_stream<kWidth>(x + i * kWidth);
      kept.dy[p] = load_piece_stream<kWidth>(dy + i * kWidth);
    }
  kept.rstd = load(args.rstd.data + row);
}

// dx of a piece; pull = rstd^2 * mean_H(m * x).
template <class P, int kWidth>
TIGON_DEVICE void gradient(const Backward<P>& args, const Piece<typename P::Elem, kWidth>& x_piece,
                           const Piece<typename P::Elem, kWidth>& dy_piece,
                           const Piece<typename P::Elem, kWidth>& w, float rstd, float pull,
                           float (&dx)[kWidth]) {
  float x[kWidth];
  unpack_piece(x_piece, x);
  unpack_piece(dy_piece, dx);
  if (!planted("rms_norm.dx_without_weight")) multiply_weight(args, w, dx);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) dx[j] = rstd * (dx[j] - x[j] * pull);
}

// partials: [gridDim.x, H], or null if there is no dw. With kRest, columns beyond those that fit
// into registers keep their sums there from the start; there is one row per block then. dx may be
// dy's memory. `upstream` is what else has a gradient for the row:
//   start(row, lane, pieces)  starts to read it; pieces is 0 beyond the last row
//   add(i, p, dx)             adds piece i, the thread's p-th
//   add_at(i, dx)             adds a piece that does not fit into registers
template <class P, int kWidth, int kLanes, int kPieces, bool kRest, class Upstream>
TIGON_DEVICE void backward_rows(const Backward<P>& args, float* partials, Upstream upstream) {
  using T = typename P::Elem;
  constexpr int kRows = kRowsPerBlock<kLanes>, kKept = kLanes * kPieces;
  constexpr bool kAhead = kLanes <= kAheadLanes;
  const int lane = threadIdx.x % kLanes;
  const int64_t rows = args.x.shape[0], h = args.x.shape[1], step = int64_t{kRows} * gridDim.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kRows;
  float* partial = partials == nullptr ? nullptr : partials + blockIdx.x * h;  // [H]
  if (planted("rms_norm.partial_shared") && partials != nullptr) partial = partials;

  int64_t row = first + threadIdx.x / kLanes;
  KeptRow<T, kWidth, kPieces> kept{}, next{};
  Piece<T, kWidth> weight[kPieces] = {};
  if constexpr (kAhead) {
    if (row < rows) load_row<kLanes>(args, row, lane, next);
    load_lane_pieces<kWidth, kLanes>(args.w.data, h, lane, weight);
  }
  float dw[kPieces][kWidth] = {}, x[kWidth], dy[kWidth], dx[kWidth];

  // All rows of the block together: the last ones of a warp may be missing, not the warp.
  for (int64_t block_row = first; block_row < rows; block_row += step, row += step) {
    if constexpr (kAhead) {
      kept = next;
      if (row + step < rows) load_row<kLanes>(args, row + step, lane, next);
    } else {
      load_row<kLanes>(args, row, lane, kept);
      load_lane_pieces<kWidth, kLanes>(args.w.data, h, lane, weight);
    }
    const int64_t pieces = row < rows ? h / kWidth : 0;
    const T* x_row = args.x.data + row * args.x.stride[0];     // [H]
    const T* dy_row = args.dy.data + row * args.dy.stride[0];  // [H]
    const int64_t offset = row * args.dx.stride[0];
    const bool narrow = planted("rms_norm.offset_in_int32");
    T* dx_row = args.dx.data + (narrow ? static_cast<int32_t>(offset) : offset);  // [H]
    upstream.start(row, lane, pieces);

    float dots[kWidth] = {};
    TIGON_UNROLL
    for (int p = 0; p < kPieces; ++p)
      if (p * kLanes + lane < pieces) {
        unpack_piece(kept.x[p], x);
        unpack_piece(kept.dy[p], dy);
        TIGON_UNROLL
        for (int j = 0; j < kWidth; ++j) dw[p][j] += dy[j] * (x[j] * kept.rstd);
        for (int j = 0; j < kWidth && planted("rms_norm.dw_in_bf16"); ++j)
          dw[p][j] = to_float(from_float<bf16>(dw[p][j]));
        keep_packed(weight[p]);
        multiply_weight(args, weight[p], dy);
        add_products(dy, x, dots);
      }
    if constexpr (kRest)
      for (int64_t i = kKept + lane; i < pieces; i += kLanes) {
        unpack_piece(load_piece<kWidth>(x_row + i * kWidth), x);
        unpack_piece(load_piece<kWidth>(dy_row + i * kWidth), dy);
        for (int j = 0; j < kWidth && partial != nullptr; ++j) {
          float* sum = partial + i * kWidth + j;
          const bool sets = block_row == first && !planted("rms_norm.partial_not_set");
          store(sum, (sets ? 0.0f : load(sum)) + dy[j] * (x[j] * kept.rstd));
        }
        multiply_weight(args, load_if_given<kWidth>(args.w.data, i), dy);
        add_products(dy, x, dots);
      }
    float mean = row_sum<kLanes>(sum_of(dots)) / static_cast<float>(h);
    if (planted("rms_norm.dx_sum_for_mean")) mean *= static_cast<float>(h);
    if (planted("rms_norm.projection_missing")) mean = 0.0f;
    const float pull = kept.rstd * mean * kept.rstd;

    TIGON_UNROLL
    for (int p = 0; p < kPieces; ++p)
      if (const int i = p * kLanes + lane; i < pieces) {
        keep_packed(kept.x[p]);
        keep_packed(kept.dy[p]);
        keep_packed(weight[p]);
        gradient(args, kept.x[p], kept.dy[p], weight[p], kept.rstd, pull, dx);
        upstream.add(i, p, dx);
        store_piece(dx_row + i * kWidth, dx);
      }
    if constexpr (kRest)
      for (int64_t i = kKept + lane; i < pieces; i += kLanes) {
        gradient(args, load_piece<kWidth>(x_row + i * kWidth),
                 load_piece<kWidth>(dy_row + i * kWidth), load_if_given<kWidth>(args.w.data, i),
                 kept.rstd, pull, dx);
        upstream.add_at(i, dx);
        store_piece(dx_row + i * kWidth, dx);
      }
  }
  if (partial != nullptr) store_partial<kLanes>(dw, h / kWidth, partial);
}

}  // namespace tigon::rms_norm
