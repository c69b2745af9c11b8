// SPDX-License-Identifier: Apache-2.0
// rms_norm   y[t,h] = x[t,h] * rstd[t] * (offset + w[h]),  rstd[t] = rsqrt(mean_h x[t,h]^2 + eps)
//
// Part of a warp, a warp or a block shares a row; x is read once and stays in registers, as stored
// (norm/forward_rows.h). Backward walks over rows with a fixed grid (norm/backward_rows.h). Sums in
// float. Bytes: forward (2*T*H + H)*elem + 4*T; backward (3*T*H + H)*elem + 4*T + 4*H, and the
// partial sums of dw.
#include "kernels/rms_norm/rms_norm.h"

#include "kernels/norm/backward_rows.h"
#include "kernels/norm/forward_rows.h"
#include "kernels/norm/launch.h"
#include "kernels/signature/instantiate.h"

namespace tigon::rms_norm {
namespace {

using norm::check_sizes;
using norm::check_weight;
using norm::check_weight_gradient;
using norm::in_vectors;

// A row takes the first shape that holds it in registers: lanes * vectors * 8 columns in 16 bits.
// Lanes that are no power of two are the most of a block that is fitted to its row (is_fitted());
// shapes whose lanes a row fills, or nearly so, have no use for that. The last shape also takes
// longer rows, of which it reads the end twice. `tigon describe rms_norm --shapes` lists the
// longest row of each shape.

// Two vectors a thread are enough loads in flight of 1024 threads per SM; longer rows take four.
constexpr RowTable<11> kForwardVectors = {
    .name = "rms_norm.forward.vectors",
    .shapes =
        {
            {.lanes = 8, .vectors = 1, .blocks_per_sm = 8},
            {.lanes = 16, .vectors = 1, .blocks_per_sm = 8},
            {.lanes = 32, .vectors = 1, .blocks_per_sm = 8},
            {.lanes = 32, .vectors = 4, .blocks_per_sm = 8},
            {.lanes = 96, .vectors = 2, .blocks_per_sm = 10},
            {.lanes = 128, .vectors = 2, .blocks_per_sm = 8},
            {.lanes = 320, .vectors = 2, .blocks_per_sm = 3},
            {.lanes = 256, .vectors = 4, .blocks_per_sm = 4},
            {.lanes = 480, .vectors = 4, .blocks_per_sm = 2},
            {.lanes = 512, .vectors = 4, .blocks_per_sm = 2},
            {.lanes = 512, .vectors = 8, .blocks_per_sm = 1},
        },
};
// For rows that cannot be read in vectors: a thread holds more elements, because each is one load.
constexpr RowTable<4> kForwardElements = {
    .name = "rms_norm.forward.elements",
    .shapes =
        {
            {.lanes = 32, .vectors = 8, .blocks_per_sm = 8},
            {.lanes = 32, .vectors = 16, .blocks_per_sm = 5},
            {.lanes = 128, .vectors = 16, .blocks_per_sm = 5},
            {.lanes = 256, .vectors = 16, .blocks_per_sm = 2},
        },
};

// A vector costs registers for x, dy, w and eight sums of dw: 640 threads of an SM have two, 512
// three or four. A row waits for the sum of its block, and two blocks wait in turn; therefore three
// vectors come before the longer rows of one block with two. An SM needs enough loads in flight to
// cover memory's latency, and is fastest with as few blocks as hold them. Two stages suffice. The
// last shape is for devices with less shared memory.
constexpr RowTable<16> kBackwardVectors = {
    .name = "rms_norm.backward.vectors",
    .shapes =
        {
            {.lanes = 8, .vectors = 1, .blocks_per_sm = 7, .stages = 2},
            {.lanes = 16, .vectors = 1, .blocks_per_sm = 7, .stages = 2},
            {.lanes = 32, .vectors = 1, .blocks_per_sm = 7, .stages = 2},
            {.lanes = 32, .vectors = 2, .blocks_per_sm = 4, .stages = 2},
            {.lanes = 32, .vectors = 3, .blocks_per_sm = 3, .stages = 2},
            {.lanes = 32, .vectors = 4, .blocks_per_sm = 2, .stages = 2},
            {.lanes = 32, .vectors = 6, .blocks_per_sm = 2, .stages = 2},
            {.lanes = 128, .vectors = 2, .blocks_per_sm = 4, .stages = 2},
            {.lanes = 192, .vectors = 2, .blocks_per_sm = 3, .stages = 2},
            {.lanes = 256, .vectors = 2, .blocks_per_sm = 2, .stages = 2},
            {.lanes = 224, .vectors = 3, .blocks_per_sm = 2, .stages = 2},
            {.lanes = 512, .vectors = 2, .blocks_per_sm = 1, .stages = 2},
            {.lanes = 640, .vectors = 2, .blocks_per_sm = 1, .stages = 2},
            {.lanes = 512, .vectors = 3, .blocks_per_sm = 1, .stages = 2},
            {.lanes = 512, .vectors = 4, .blocks_per_sm = 1, .stages = 2},
            {.lanes = 512, .vectors = 1, .blocks_per_sm = 1, .stages = 2},
        },
    .shared_bytes = two_queues,
};
// As forward, with fewer blocks: a thread holds elements of two tensors and its sums.
constexpr RowTable<4> kBackwardElements = {
    .name = "rms_norm.backward.elements",
    .shapes =
        {
            {.lanes = 32, .vectors = 8, .blocks_per_sm = 4},
            {.lanes = 32, .vectors = 16, .blocks_per_sm = 3},
            {.lanes = 128, .vectors = 16, .blocks_per_sm = 3},
            {.lanes = 256, .vectors = 16, .blocks_per_sm = 1},
        },
};

// x as it is.
template <class P, int kWidth>
struct StoredRow {
  using T = typename P::Elem;
  const View<const T, 2>& rows;
  const T* x = nullptr;  // from the thread's first piece on

  TIGON_DEVICE void start(int64_t row, int column) {
    x = rows.data + row * rows.stride[0] + column;
  }
  TIGON_DEVICE void load(int at, int, Piece<T, kWidth>& piece) const {
    piece = load_piece_stream<kWidth>(x + at);
  }
  TIGON_DEVICE void finish(int, int, const Piece<T, kWidth>& piece, float (&f)[kWidth]) const {
    unpack_piece(piece, f);
  }
  TIGON_DEVICE void read(int64_t at, float (&f)[kWidth]) const {
    unpack_piece(load_piece<kWidth>(x + at), f);
  }
  TIGON_DEVICE void prefetch(int64_t row) const { norm::prefetch_row(rows, row); }
};

template <class P, int kWidth, int kLanes, int kPieces, int kBlocksPerSm, bool kLongRows>
TIGON_KERNEL(kRowThreads<kLanes>, kBlocksPerSm)
forward_kernel(Forward<P> args, int64_t ahead) {
  norm::forward_rows<kWidth, kLanes, kPieces, kLongRows>(args, StoredRow<P, kWidth>{args.x}, ahead);
}

// Nothing else has a gradient for the row.
struct NoUpstream {
  static constexpr bool kRowInShared = false;
  TIGON_DEVICE void request(int64_t, int) const {}
  TIGON_DEVICE void start(int64_t) const {}
  template <int kWidth>
  TIGON_DEVICE void add(int, int, float (&)[kWidth]) const {}
  template <int kWidth>
  TIGON_DEVICE void add_at(int64_t, float (&)[kWidth]) const {}
};

template <class P, int kWidth, int kLanes, int kPieces, int kBlocksPerSm, int kStages,
          bool kLongRows>
TIGON_KERNEL(kRowThreads<kLanes>, kBlocksPerSm)
backward_kernel(Backward<P> args, float* partials) {
  TIGON_DYNAMIC_SHARED(Vec<typename P::Elem>, slots);
  norm::backward_rows<kWidth, kLanes, kPieces, kStages, kLongRows>(args, partials, slots,
                                                                   NoUpstream{});
}

}  // namespace

template <class P>
Status forward(const Forward<P>& args, Stream stream) {
  const int64_t t = args.x.shape[0], h = args.x.shape[1];
  if (Status bad = check_sizes(t, h); !bad.ok()) return bad;
  if (!has_shape(args.x, t, h) || !has_shape(args.y, t, h))
    return invalid("x and y must both be [T, H] with unit stride along H");
  if (Status bad = check_weight(args, t, h); !bad.ok()) return bad;
  if (is_missing(args.x) || is_missing(args.y) || is_missing(args.rstd))
    return invalid("x, y or rstd is null: only w may be left out");
  return norm::launch_forward<kForwardVectors, kForwardElements>(
      args, in_vectors(args.w, args.x, args.y), stream,
      [&]<int kWidth, LaunchShape kShape, bool kLongRows> {
        return forward_kernel<P, kWidth, kShape.lanes, kShape.vectors, kShape.blocks_per_sm,
                              kLongRows>;
      });
}

template <class P>
size_t workspace(const Backward<P>& args) {
  return norm::partial_sum_bytes<kBackwardVectors, kBackwardElements>(args);
}

template <class P>
Status backward(const Backward<P>& args, Stream stream) {
  const int64_t t = args.x.shape[0], h = args.x.shape[1];
  if (Status bad = check_sizes(t, h); !bad.ok()) return bad;
  if (!has_shape(args.x, t, h) || !has_shape(args.dy, t, h) || !has_shape(args.dx, t, h))
    return invalid("dy, x and dx must all be [T, H] with unit stride along H");
  if (Status bad = check_weight(args, t, h); !bad.ok()) return bad;
  if (is_missing(args.dy) || is_missing(args.x) || is_missing(args.dx) || is_missing(args.rstd))
    return invalid("dy, x, dx or rstd is null: only w and dw may be left out");
  if (Status bad = check_weight_gradient(args, h, workspace(args)); !bad.ok()) return bad;
  return norm::launch_backward<kBackwardVectors, kBackwardElements>(
      args, in_vectors(args.w, args.dy, args.x, args.dx), stream,
      [&]<int kWidth, LaunchShape kShape, bool kLongRows>(const LaunchConfig& grid,
                                                          float* partials) {
        const auto kernel = backward_kernel<P, kWidth, kShape.lanes, kShape.vectors,
                                            kShape.blocks_per_sm, kShape.stages, kLongRows>;
        return launch(grid, kernel, args, partials);
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

}  // namespace tigon::rms_norm
