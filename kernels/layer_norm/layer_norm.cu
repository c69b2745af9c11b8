// SPDX-License-Identifier: Apache-2.0
// layer_norm   y[t,h] = (x[t,h] - mean[t]) * rstd[t] * w[h] + b[h],
//              rstd[t] = rsqrt(mean_h (x[t,h] - mean[t])^2 + eps)
//
// Part of a warp, a warp or a block shares a row. Sums in float. Bytes: (2*T*H + 2*H)*elem + 8*T.
// Forward: forward_kernel.h. Backward: backward_kernel.h.
#include "kernels/layer_norm/layer_norm.h"

#include <algorithm>

#include "kernels/device/scratch_parts.h"
#include "kernels/layer_norm/backward_kernel.h"
#include "kernels/layer_norm/forward_kernel.h"
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
