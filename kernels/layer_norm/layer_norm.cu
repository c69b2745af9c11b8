// SPDX-License-Identifier: Apache-2.0
// layer_norm   y[t,h] = (x[t,h] - mean[t]) * rstd[t] * w[h] + b[h],
//              rstd[t] = rsqrt(mean_h (x[t,h] - mean[t])^2 + eps)
//
// Part of a warp, a warp or a block shares a row; x is read once and stays in registers, as stored.
// Mean and variance come from one pair of sums: of x - centre and of its square, where centre is
// near the mean of the warp's elements (row_moments.h). E[x^2] - mean^2 would lose every digit for
// rows far from zero, and a second sweep would take more instructions than there is time for at the
// rate of memory. Bytes: (2*T*H + 2*H)*elem + 8*T. Sums in float. Backward: backward_kernel.h.
#include "kernels/layer_norm/layer_norm.h"

#include <algorithm>

#include "kernels/device/rows_ahead.h"
#include "kernels/device/scratch_parts.h"
#include "kernels/layer_norm/backward_kernel.h"
#include "kernels/layer_norm/row_moments.h"
#include "kernels/norm/launch.h"
#include "kernels/signature/checks.h"
#include "kernels/signature/instantiate.h"

namespace tigon::layer_norm {
namespace {

using norm::check_scratch;
using norm::check_sizes;
using norm::in_vectors;

// As rms_norm's: four vectors a thread and 1024 threads per SM. The shortest rows of a block share
// it by twos: with a block each, blocks would start more often than a multiprocessor can.
constexpr RowTable<12> kForwardVectors = {
    .name = "layer_norm.forward.vectors",
    .shapes =
        {
            {.lanes = 8, .vectors = 1, .blocks_per_sm = 8},
            {.lanes = 16, .vectors = 1, .blocks_per_sm = 8},
            {.lanes = 32, .vectors = 1, .blocks_per_sm = 8},
            {.lanes = 32, .vectors = 4, .blocks_per_sm = 8},
            {.lanes = 64, .vectors = 4, .blocks_per_sm = 8},
            {.lanes = 96, .vectors = 4, .blocks_per_sm = 10},
            {.lanes = 128, .vectors = 4, .blocks_per_sm = 8},
            {.lanes = 192, .vectors = 4, .blocks_per_sm = 5},
            {.lanes = 256, .vectors = 4, .blocks_per_sm = 4},
            {.lanes = 448, .vectors = 4, .blocks_per_sm = 2},
            {.lanes = 512, .vectors = 4, .blocks_per_sm = 2},
            {.lanes = 512, .vectors = 6, .blocks_per_sm = 1},
        },
};
// For rows that cannot be read in vectors: a thread holds more elements, because each is one load.
constexpr RowTable<4> kForwardElements = {
    .name = "layer_norm.forward.elements",
    .shapes =
        {
            {.lanes = 32, .vectors = 8, .blocks_per_sm = 8},
            {.lanes = 32, .vectors = 16, .blocks_per_sm = 5},
            {.lanes = 128, .vectors = 16, .blocks_per_sm = 4},
            {.lanes = 256, .vectors = 16, .blocks_per_sm = 2},
        },
};

// Where lanes of a warp share a row, a vector costs registers for x, dy, w, eight sums of dw and
// eight of db. Longer rows stay in shared memory, where asynchronous copies put them; as in
// rms_norm two blocks with three vectors come before one with two. The longest rows have more of
// them in flight. Shapes that hold no longer row than the one before are for devices with less
// shared memory.
constexpr RowTable<15> kBackwardVectors = {
    .name = "layer_norm.backward.vectors",
    .shapes =
        {
            {.lanes = 8, .vectors = 1, .blocks_per_sm = 5, .stages = 2},
            {.lanes = 16, .vectors = 1, .blocks_per_sm = 5, .stages = 2},
            {.lanes = 32, .vectors = 1, .blocks_per_sm = 5, .stages = 2},
            {.lanes = 32, .vectors = 2, .blocks_per_sm = 4, .stages = 2},
            {.lanes = 32, .vectors = 3, .blocks_per_sm = 4, .stages = 2},
            {.lanes = 32, .vectors = 4, .blocks_per_sm = 2, .stages = 2},
            {.lanes = 64, .vectors = 3, .blocks_per_sm = 3, .stages = 2},
            {.lanes = 320, .vectors = 2, .blocks_per_sm = 2, .stages = 2},
            {.lanes = 256, .vectors = 3, .blocks_per_sm = 2, .stages = 2},
            {.lanes = 512, .vectors = 2, .blocks_per_sm = 1, .stages = 4},
            {.lanes = 512, .vectors = 2, .blocks_per_sm = 1, .stages = 3},
            {.lanes = 640, .vectors = 2, .blocks_per_sm = 1, .stages = 2},
            {.lanes = 512, .vectors = 4, .blocks_per_sm = 1, .stages = 3},
            {.lanes = 512, .vectors = 4, .blocks_per_sm = 1, .stages = 2},
            {.lanes = 512, .vectors = 1, .blocks_per_sm = 1, .stages = 2},
        },
    .shared_bytes = two_queues,
};
// As forward, with fewer blocks: a thread holds elements of two tensors and its sums.
constexpr RowTable<4> kBackwardElements = {
    .name = "layer_norm.backward.elements",
    .shapes =
        {
            {.lanes = 32, .vectors = 8, .blocks_per_sm = 4},
            {.lanes = 32, .vectors = 16, .blocks_per_sm = 2},
            {.lanes = 128, .vectors = 16, .blocks_per_sm = 2},
            {.lanes = 256, .vectors = 16, .blocks_per_sm = 1},
        },
};

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

template <class P, int kWidth, int kLanes, int kPieces, int kBlocksPerSm, bool kLongRows>
TIGON_KERNEL(kRowThreads<kLanes>, kBlocksPerSm)
forward_kernel(Forward<P> args, int64_t ahead) {
  using T = typename P::Elem;
  using RowPiece = Piece<T, kWidth>;
  using Count = std::conditional_t<kLongRows, int64_t, int>;  // of pieces
  constexpr int kRows = kRowsPerBlock<kLanes>, kResident = kLanes * kPieces,
                kStride = kPieceStride<kLanes>;
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
  RowPiece resident[kPieces], weight[kBatch], bias[kBatch];
  leave_unset(resident);
  leave_unset(weight);
  leave_unset(bias);
  if constexpr (kWidth > 1 && kPieces > 1)
    if (ahead > 0 && first == 0 && row + ahead < args.x.shape[0]) prefetch_row(args.x, row + ahead);
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
  const float mean = part.centre + off;
  float variance = (part.moments.second - part.moments.first * off) * inverse_h;
  variance = variance < 0.0f ? 0.0f : variance;  // by a rounding; a NaN stays
  float rstd = fast_rsqrt(variance + args.eps);
  if (first == 0 && active) {
    store(args.mean.data + row, mean);
    store(args.rstd.data + row, rstd);
  }

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
  if constexpr (kLongRows)
    for (int64_t i = kResident; i + first < pieces; i += kLanes)
      store_y<P>(load_piece<kWidth>(x + i * kWidth),
                 load_piece_or<kWidth>(args.w.data, 1.0f, i + first),
                 load_piece_or<kWidth>(args.b.data, 0.0f, i + first), mean, rstd, y + i * kWidth);
}

// ---- launchers ----------------------------------------------------------------------------------

struct Partials {
  float *dw, *db;  // [blocks, H]; null where the sum is not wanted
  size_t bytes;
};
template <class P>
Partials partials_of(const Backward<P>& args) {
  const int64_t count = norm::partial_sums<kBackwardVectors, kBackwardElements, typename P::Elem>(
      args.x.shape[0], args.x.shape[1]);
  ScratchParts parts(args.scratch.data);
  float* const dw = args.dw ? parts.take<float>(count) : nullptr;
  float* const db = args.db ? parts.take<float>(count) : nullptr;
  return {dw, db, parts.bytes()};
}

template <class View>
bool fits_row(const View& v, int64_t h) {
  return !v || has_shape(v, h);
}

}  // namespace

template <class P>
Status forward(const Forward<P>& args, Stream stream) {
  const int64_t t = args.x.shape[0], h = args.x.shape[1];
  if (Status bad = check_sizes(t, h); !bad.ok()) return bad;
  if (!has_shape(args.x, t, h) || !has_shape(args.y, t, h))
    return invalid("x and y must both be [T, H] with unit stride along H");
  if (!fits_row(args.w, h) || !fits_row(args.b, h))
    return invalid("w and b must be [H] with unit stride");
  if (!has_shape(args.mean, t) || !has_shape(args.rstd, t))
    return invalid("mean and rstd must be [T] with unit stride");
  if (is_missing(args.x) || is_missing(args.y) || is_missing(args.mean) || is_missing(args.rstd))
    return invalid("x, y, mean or rstd is null: only w and b may be left out");
  const bool vectors = in_vectors(args.w, args.x, args.y) && is_aligned16(args.b.data);
  return norm::launch_forward<kForwardVectors, kForwardElements>(
      args, vectors, stream, [&]<int kWidth, LaunchShape kShape, bool kLongRows> {
        return forward_kernel<P, kWidth, kShape.lanes, kShape.vectors, kShape.blocks_per_sm,
                              kLongRows>;
      });
}

template <class P>
size_t workspace(const Backward<P>& args) {
  Backward<P> sizes = args;
  sizes.scratch = {};
  return partials_of(sizes).bytes;
}

template <class P>
Status backward(const Backward<P>& args, Stream stream) {
  const int64_t t = args.x.shape[0], h = args.x.shape[1];
  if (Status bad = check_sizes(t, h); !bad.ok()) return bad;
  if (!has_shape(args.x, t, h) || !has_shape(args.dy, t, h) || !has_shape(args.dx, t, h))
    return invalid("dy, x and dx must all be [T, H] with unit stride along H");
  if (!fits_row(args.w, h) || !fits_row(args.dw, h) || !fits_row(args.db, h))
    return invalid("w, dw and db must be [H] with unit stride");
  if (!has_shape(args.mean, t) || !has_shape(args.rstd, t))
    return invalid("mean and rstd must be [T] with unit stride");
  if (is_missing(args.dy) || is_missing(args.x) || is_missing(args.dx) || is_missing(args.mean) ||
      is_missing(args.rstd))
    return invalid("dy, x, dx, mean or rstd is null: only w, dw and db may be left out");
  if (args.dw && !args.w) return invalid("dw is given without w: give w, or leave out dw");
  if (Status bad = check_scratch(args.scratch, workspace(args)); !bad.ok()) return bad;
  const Partials partials = partials_of(args);
  float *const dw = partials.dw, *const db = partials.db;
  return norm::launch_backward<kBackwardVectors, kBackwardElements>(
      args, in_vectors(args.w, args.dy, args.x, args.dx), {dw, args.dw.data}, {db, args.db.data},
      stream, [&]<int kWidth, LaunchShape kShape, bool kLongRows>(const LaunchConfig& grid) {
        const auto kernel = backward_kernel<P, kWidth, kShape.lanes, kShape.vectors,
                                            kShape.blocks_per_sm, kShape.stages, kLongRows>;
        return launch(grid, kernel, args, dw, db);
      });
}

#if TIGON_IN_PART(1)
TIGON_INSTANTIATE(forward, Forward);
TIGON_INSTANTIATE_FOR(F32, backward, Backward);
#endif
#if TIGON_IN_PART(2)
TIGON_INSTANTIATE_FOR(BF16, backward, Backward);
TIGON_INSTANTIATE_FOR(F16, backward, Backward);
TIGON_INSTANTIATE_WORKSPACE(Backward);
#endif

}  // namespace tigon::layer_norm
