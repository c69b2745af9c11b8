// SPDX-License-Identifier: Apache-2.0
// Forward of rms_norm, and of add_rms_norm, whose rows are sums:
//
//   y = x * rstd * (offset + w),  rstd = 1 / sqrt(mean_H(x^2) + eps)
//
// A row is read once and stays in registers, as stored.
#pragma once
#include "kernels/norm/casting.h"
#include "kernels/norm/rows_ahead.h"
#include "kernels/norm/weight.h"

namespace tigon::norm {

// x becomes y, as llama's models cast.
template <class Args, int kWidth>
TIGON_DEVICE void normalise_llama(const Args& args, const Piece<typename Args::Elem, kWidth>& w,
                                  float rstd, float (&x)[kWidth]) {
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) x[j] *= rstd;
  round_piece<typename Args::Elem>(x);
  multiply_weight(args, w, x);
}

// x becomes y.
template <class Args, int kWidth>
TIGON_DEVICE void normalise(const Args& args, const Piece<typename Args::Elem, kWidth>& w,
                            float rstd, float (&x)[kWidth]) {
  if (args.casting == Casting::kLlama) return normalise_llama(args, w, rstd, x);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) x[j] *= rstd;
  if (args.casting != Casting::kGemma) round_piece<typename Args::Elem>(x);
  if (args.casting != Casting::kNone) return multiply_weight(args, w, x);
  float gain[kWidth];
  for (float& g : gain) g = 1.0f;
  multiply_weight(args, w, gain);
  round_piece<typename Args::Elem>(gain);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) x[j] *= gain[j];
}

// The squares of the thread's pieces in registers, which `input` finishes.
template <int kLanes, class Input, class T, int kWidth, int kPieces>
TIGON_DEVICE void add_squares(Input& input, int mine, Piece<T, kWidth> (&resident)[kPieces],
                              float (&squares)[kWidth]) {
  float f[kWidth];
  for_lane_pieces<kLanes, kPieces>(mine, [&](int p) {
    input.finish(p * kPieceStride<kLanes> * kWidth, p, resident[p], f);
    add_products(f, f, squares);
  });
}

// y of the pieces in registers.
template <int kLanes, class Args, class T, int kWidth, int kPieces>
TIGON_DEVICE void store_resident(const Args& args, int mine, Piece<T, kWidth> (&resident)[kPieces],
                                 Piece<T, kWidth> (&weight)[kPieces], float rstd, T* y) {
  float f[kWidth];
  const auto store_with = [&](const auto& to_y) {
    for_lane_pieces<kLanes, kPieces>(mine, [&](int p) {
      keep_packed(resident[p]);
      keep_packed(weight[p]);
      unpack_piece(resident[p], f);
      to_y(weight[p]);
      store_piece(y + p * kPieceStride<kLanes> * kWidth, f);
    });
  };
  // So that the usual case asks once, not for every piece.
  if (args.w.data != nullptr && args.casting == Casting::kLlama)
    store_with([&](const auto& w) { normalise_llama(args, w, rstd, f); });
  else
    store_with([&](const auto& w) { normalise(args, w, rstd, f); });
}

// y of the pieces that registers do not hold; args.x has them.
template <int kWidth, int kLanes, class Args>
TIGON_DEVICE void store_tail(const Args& args, const typename Args::Elem* x, int from, int first,
                             int64_t pieces, float rstd, typename Args::Elem* y) {
  float f[kWidth];
  for (int64_t i = from; i + first < pieces; i += kLanes) {
    unpack_piece(load_piece<kWidth>(x + i * kWidth), f);
    normalise(args, load_if_given<kWidth>(args.w.data, i + first), rstd, f);
    store_piece(y + i * kWidth, f);
  }
}

// One row, which part of a warp, a warp or a block shares. Args are rms_norm::Forward or have its
// members. `ahead`: see rows_ahead(). `input` says where the row comes from:
//   start(row, column)      called first; the thread's first piece begins at `column`, and the row
//                           may be beyond the last
//   load(at, p, piece)      starts to read the thread's p-th piece, `at` elements behind its first
//   finish(at, p, piece, f) makes it the piece to normalise, with the values f
//   read(at, f)             both, for a piece beyond those in registers; afterwards args.x holds it
//   prefetch(row)           prefetches a row into L2; one lane calls it
template <int kWidth, int kLanes, int kPieces, bool kLongRows, class Args, class Input>
TIGON_DEVICE void forward_rows(const Args& args, Input input, int64_t ahead) {
  using T = typename Args::Elem;
  constexpr int kRows = kRowsPerBlock<kLanes>, kInRegisters = kLanes * kPieces,
                kStride = kPieceStride<kLanes>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kLanes;
  const bool active = row < args.x.shape[0];
  const int first = first_piece<kLanes, kPieces>();  // of the thread
  const int64_t h = args.x.shape[1];
  const int64_t pieces = active ? h / kWidth : 0;
  // The thread has its p-th piece in registers if p * kStride < mine.
  const int mine = static_cast<int>(pieces < kInRegisters ? pieces : kInRegisters) - first;
  input.start(row, first * kWidth);
  T* y = args.y.data + first * kWidth + row * args.y.stride[0];

  Piece<T, kWidth> resident[kPieces], weight[kPieces] = {};
  leave_unset(resident);
  if constexpr (kWidth > 1 && kPieces > 1)
    if (ahead > 0 && first == 0 && row + ahead < args.x.shape[0]) input.prefetch(row + ahead);
  for_lane_pieces<kLanes, kPieces>(
      mine, [&](int p) { input.load(p * kStride * kWidth, p, resident[p]); });
  // Now, so that nothing is waited for after the sum.
  load_lane_pieces<kWidth, kLanes>(args.w.data, h, first, weight);

  float squares[kWidth] = {};
  add_squares<kLanes>(input, mine, resident, squares);
  if constexpr (kLongRows)
    for (int64_t i = kInRegisters; i + first < pieces; i += kLanes) {
      float f[kWidth];
      input.read(i * kWidth, f);
      add_products(f, f, squares);
    }
  float mean = row_sum<kLanes>(sum_of(squares), 0) / static_cast<float>(h);
  float rstd = fast_rsqrt(mean + args.eps);
  if (first == 0 && active) store(args.rstd.data + row, rstd);
  if (args.casting == Casting::kNone) rstd = to_float(from_float<T>(rstd));

  store_resident<kLanes>(args, mine, resident, weight, rstd, y);
  if constexpr (kLongRows)
    store_tail<kWidth, kLanes>(args, args.x.data + row * args.x.stride[0] + first * kWidth,
                               kInRegisters, first, pieces, rstd, y);
}

}  // namespace tigon::norm
