// SPDX-License-Identifier: Apache-2.0
// layer_norm forward   y = (x - mean) * rstd * w + b,  rstd = 1 / sqrt(mean_H((x - mean)^2) + eps)
//
// x is read once and stays in registers, as stored. Mean and variance come from one pair of sums:
// of x - centre and of its square, where centre is near the mean of the warp's elements
// (row_moments.h). E[x^2] - mean^2 would lose every digit for rows far from zero, and a second
// sweep would take more instructions than there is time for at the rate of memory.
#pragma once
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/layer_norm/row_moments.h"
#include "kernels/norm/rows_ahead.h"

namespace tigon::layer_norm {

// A value near the mean of the elements that a warp has of a row: the mean of its first pieces. The
// sums about it lose a factor of at most 1 + kPieces, when those pieces have all of the variance.
template <int kLanes, int kPieces, class T, int kWidth, class Count>
TIGON_DEVICE float centre_of(const Piece<T, kWidth>& first, int mine, Count pieces) {
  constexpr int kGroup = kLanes < 32 ? kLanes : 32;
  float f[kWidth] = {};
  if (mine > 0) unpack_piece(first, f);
  const Count remaining = pieces - first_piece_of_warp<kLanes, kPieces>();
  const auto count = static_cast<float>(remaining < 1        ? 1
                                        : remaining < kGroup ? remaining
                                                             : Count{kGroup}) *
                     static_cast<float>(kWidth);
  const float centre = fast_div(warp_reduce<kGroup>(sum_of(f), Sum{}), count);
  // An infinite one would make every difference infinite or a NaN.
  return fabsf(centre) < INFINITY ? centre : 0.0f;
}

template <class T, int kWidth>
TIGON_DEVICE void add_centred(const Piece<T, kWidth>& piece, float centre, float (&sums)[kWidth],
                              float (&squares)[kWidth]) {
  float x[kWidth];
  unpack_piece(piece, x);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) {
    const float d = x[j] - centre;
    sums[j] += d;
    squares[j] += d * d;
  }
}

// sum / h, exact where the quotient is a float. sum * (1 / h) alone is not: of 14 elements of 1000
// it makes 1000.00006. A division needs more registers than these kernels have free. An infinite
// sum has no residual.
TIGON_DEVICE float mean_of(float sum, float h, float inverse_h) {
  const float quotient = sum * inverse_h, residual = fmaf(-quotient, h, sum);
  return fabsf(residual) <= fabsf(sum) ? fmaf(residual, inverse_h, quotient) : quotient;
}

// The moments of a row from its pieces: those in registers, and in long rows the others from x on.
template <int kLanes, bool kLongRows, class T, int kWidth, int kPieces, class Count>
TIGON_DEVICE RowPart moments_of(Piece<T, kWidth> (&resident)[kPieces], const T* x, int mine,
                                Count pieces, float elements) {
  const float centre = centre_of<kLanes, kPieces>(resident[0], mine, pieces);
  float sums[kWidth] = {}, squares[kWidth] = {};
  for_lane_pieces<kLanes, kPieces>(mine, [&](int p) {
    keep_packed(resident[p]);
    add_centred(resident[p], centre, sums, squares);
  });
  if constexpr (kLongRows)
    for (int64_t i = kLanes * kPieces; i + static_cast<int>(threadIdx.x % kLanes) < pieces;
         i += kLanes)
      add_centred(load_piece<kWidth>(x + i * kWidth), centre, sums, squares);
  constexpr int kGroup = kLanes < 32 ? kLanes : 32;
  RowPart part = {elements, centre,
                  warp_reduce<kGroup>(Moments{sum_of(sums), sum_of(squares)}, Sum{})};
  if constexpr (kLanes > 32) {
    part.count = warp_elements<kWidth, kLanes, kPieces>(pieces);
    part = join_parts<kLanes>(part, elements);
  }
  return part;
}

// Of a row whose mean lies `off` beside the centre of its moments.
TIGON_DEVICE float rstd_of(const Moments& moments, float off, float inverse_h, float eps) {
  float variance = (moments.second - moments.first * off) * inverse_h;
  variance = variance < 0.0f ? 0.0f : variance;  // by a rounding; a NaN stays
  float rstd = fast_rsqrt(variance + eps);
  return rstd;
}

// x, w and b as stored; w of ones where there is none, b of zeros.
template <class P, int kWidth>
TIGON_DEVICE void store_y(const Piece<typename P::Elem, kWidth>& x,
                          const Piece<typename P::Elem, kWidth>& w,
                          const Piece<typename P::Elem, kWidth>& b, float mean, float rstd,
                          typename P::Elem* y) {
  float f[kWidth], gain[kWidth], shift[kWidth];
  unpack_piece(x, f);
  unpack_piece(w, gain);
  unpack_piece(b, shift);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) {
    f[j] = (f[j] - mean) * rstd * gain[j];
    f[j] += shift[j];
  }
  store_piece(y, f);
}

// y of the pieces in registers. weight and bias hold the first of w and b; load_affine(from) reads
// those from the thread's piece `from` on.
template <class P, int kLanes, class LoadAffine, class T, int kWidth, int kPieces, int kBatch>
TIGON_DEVICE void store_resident(const LoadAffine& load_affine, int mine,
                                 Piece<T, kWidth> (&resident)[kPieces],
                                 Piece<T, kWidth> (&weight)[kBatch],
                                 Piece<T, kWidth> (&bias)[kBatch], float mean, float rstd, T* y) {
  constexpr int kStride = kPieceStride<kLanes>;
  TIGON_UNROLL
  for (int from = 0; from < kPieces; from += kBatch) {
    if (from > 0) load_affine(from);
    for_lane_pieces<kLanes, kBatch>(mine - from * kStride, [&](int k) {
      const int p = from + k;
      keep_packed(resident[p]);
      keep_packed(weight[k]);
      keep_packed(bias[k]);
      store_y<P>(resident[p], weight[k], bias[k], mean, rstd, y + p * kStride * kWidth);
    });
  }
}

// ahead: see norm::rows_ahead().
template <class P, int kWidth, int kLanes, int kPieces, int kBlocksPerSm, bool kLongRows>
TIGON_KERNEL(kRowThreads<kLanes>, kBlocksPerSm)
forward_kernel(Forward<P> args, int64_t ahead) {
  using T = typename P::Elem;
  using Count = std::conditional_t<kLongRows, int64_t, int>;  // of pieces
  constexpr int kRows = kRowsPerBlock<kLanes>, kStride = kPieceStride<kLanes>,
                kResident = kLanes * kPieces;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kLanes;
  const bool active = row < args.x.shape[0];
  const int first = first_piece<kLanes, kPieces>();  // of the thread
  const int64_t h = args.x.shape[1];
  const auto pieces = static_cast<Count>(active ? h / kWidth : 0);
  // The thread has its p-th piece in registers if p * kStride < mine.
  const int mine = static_cast<int>(pieces < kResident ? pieces : kResident) - first;
  const float elements = static_cast<float>(h), inverse_h = fast_div(1.0f, elements);
  // [H], as all pointers here from the thread's first piece on.
  const T* x = args.x.data + first * kWidth + row * args.x.stride[0];
  T* y = args.y.data + first * kWidth + row * args.y.stride[0];

  // Pieces of w and b at a time: eight would not leave 64 registers a thread.
  constexpr int kBatch = kWidth > 1 && kPieces > 2 ? 2 : kPieces;
  Piece<T, kWidth> resident[kPieces], weight[kBatch], bias[kBatch];
  leave_unset(resident, weight, bias);
  if constexpr (kWidth > 1 && kPieces > 1)
    if (ahead > 0 && first == 0 && row + ahead < args.x.shape[0])
      norm::prefetch_row(args.x, row + ahead);
  for_lane_pieces<kLanes, kPieces>(
      mine, [&](int p) { resident[p] = load_piece_stream<kWidth>(x + p * kStride * kWidth); });
  const auto load_affine = [&](int from) {
    const int skipped = from * kStride;
    load_pieces_or<kWidth, kLanes>(args.w.data, 1.0f, first + skipped, mine - skipped, weight);
    load_pieces_or<kWidth, kLanes>(args.b.data, 0.0f, first + skipped, mine - skipped, bias);
  };
  // So that nothing is waited for after the sums, where there are registers for it.
  constexpr bool kEarly = kPieces <= 2;
  if constexpr (kEarly) load_affine(0);
  const RowPart part = moments_of<kLanes, kLongRows>(resident, x, mine, pieces, elements);
  if constexpr (!kEarly) load_affine(0);

  // The mean's rounding is not in `off`: a row far from zero with little variance would feel it.
  const float off = mean_of(part.moments.first, elements, inverse_h);
  const float mean = part.centre + off, rstd = rstd_of(part.moments, off, inverse_h, args.eps);
  if (first == 0 && active) {
    store(args.mean.data + row, mean);
    store(args.rstd.data + row, rstd);
  }
  store_resident<P, kLanes>(load_affine, mine, resident, weight, bias, mean, rstd, y);
  if constexpr (kLongRows)
    for (int64_t i = kResident; i + first < pieces; i += kLanes)
      store_y<P>(load_piece<kWidth>(x + i * kWidth),
                 load_piece_or<kWidth>(args.w.data, 1.0f, i + first),
                 load_piece_or<kWidth>(args.b.data, 0.0f, i + first), mean, rstd, y + i * kWidth);
}

}  // namespace tigon::layer_norm
