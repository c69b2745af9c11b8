// SPDX-License-Identifier: Apache-2.0
// add_rms_norm   h = x + residual,  y = h * rstd * (offset + w),  rstd = rsqrt(mean_H h^2 + eps)
//
// rms_norm's kernels on another row: x and residual are read once; their rounded sum is stored and
// stays in registers. Backward adds dh, which arrives through a queue like h and dy. Bytes: forward
// (4*T*H + H)*elem + 4*T; backward (4*T*H + H)*elem + 4*T + 4*H, and the partial sums of dw.
#include "kernels/add_rms_norm/add_rms_norm.h"

#include "kernels/norm/backward_rows.h"
#include "kernels/norm/forward_rows.h"
#include "kernels/norm/launch.h"
#include "kernels/signature/instantiate.h"

namespace tigon::add_rms_norm {
namespace {

using norm::check_sizes;
using norm::check_weight;
using norm::check_weight_gradient;
using norm::in_vectors;

// As rms_norm's, with two vectors a thread: two tensors are in flight.
constexpr RowTable<10> kForwardVectors = {
    .name = "add_rms_norm.forward.vectors",
    .shapes =
        {
            {.lanes = 8, .vectors = 1, .blocks_per_sm = 8},
            {.lanes = 16, .vectors = 1, .blocks_per_sm = 8},
            {.lanes = 32, .vectors = 1, .blocks_per_sm = 8},
            {.lanes = 32, .vectors = 4, .blocks_per_sm = 6},
            {.lanes = 128, .vectors = 2, .blocks_per_sm = 8},
            {.lanes = 256, .vectors = 2, .blocks_per_sm = 4},
            {.lanes = 512, .vectors = 2, .blocks_per_sm = 2},
            {.lanes = 896, .vectors = 2, .blocks_per_sm = 1},
            {.lanes = 1024, .vectors = 2, .blocks_per_sm = 1},
            {.lanes = 512, .vectors = 8, .blocks_per_sm = 1},
        },
};
// For rows that cannot be read in vectors: a thread holds more elements, because each is one load.
constexpr RowTable<4> kForwardElements = {
    .name = "add_rms_norm.forward.elements",
    .shapes =
        {
            {.lanes = 32, .vectors = 8, .blocks_per_sm = 8},
            {.lanes = 32, .vectors = 16, .blocks_per_sm = 4},
            {.lanes = 128, .vectors = 16, .blocks_per_sm = 4},
            {.lanes = 256, .vectors = 16, .blocks_per_sm = 2},
        },
};

// Kernels read all three tensors of a row from shared memory, where asynchronous copies put them:
// keeping rows in registers, or reading dh without a queue, is slower, except where one or two
// warps have a row. The longest rows leave dh no room in shared memory. Shapes that hold no longer
// row than the one before are for devices with less shared memory.
constexpr size_t three_queues(const LaunchShape& shape) {
  return (is_long(shape) ? 2 : 3) * queue_bytes(shape);
}
constexpr RowTable<14> kBackwardVectors = {
    .name = "add_rms_norm.backward.vectors",
    .shapes =
        {
            {.lanes = 8, .vectors = 1, .blocks_per_sm = 6},
            {.lanes = 16, .vectors = 1, .blocks_per_sm = 6},
            {.lanes = 32, .vectors = 1, .blocks_per_sm = 6},
            {.lanes = 32, .vectors = 2, .blocks_per_sm = 4},
            {.lanes = 32, .vectors = 3, .blocks_per_sm = 3},
            {.lanes = 32, .vectors = 4, .blocks_per_sm = 2},
            {.lanes = 64, .vectors = 3, .blocks_per_sm = 3},
            {.lanes = 288, .vectors = 2, .blocks_per_sm = 2, .stages = 2},
            {.lanes = 480, .vectors = 2, .blocks_per_sm = 1, .stages = 2},
            {.lanes = 512, .vectors = 2, .blocks_per_sm = 1, .stages = 4},
            {.lanes = 512, .vectors = 2, .blocks_per_sm = 1, .stages = 3},
            {.lanes = 512, .vectors = 4, .blocks_per_sm = 1, .stages = 3},
            {.lanes = 512, .vectors = 4, .blocks_per_sm = 1, .stages = 2},
            {.lanes = 512, .vectors = 1, .blocks_per_sm = 1, .stages = 2},
        },
    .shared_bytes = three_queues,
};
// As forward, with fewer blocks: a thread holds elements of two tensors and its sums.
constexpr RowTable<4> kBackwardElements = {
    .name = "add_rms_norm.backward.elements",
    .shapes =
        {
            {.lanes = 32, .vectors = 8, .blocks_per_sm = 4},
            {.lanes = 32, .vectors = 16, .blocks_per_sm = 2},
            {.lanes = 128, .vectors = 16, .blocks_per_sm = 2},
            {.lanes = 256, .vectors = 16, .blocks_per_sm = 1},
        },
};

// x + residual, which goes to h.
template <class P, int kWidth, int kPieces>
struct SummedRow {
  using T = typename P::Elem;
  using RowPiece = Piece<T, kWidth>;
  const Forward<P>& args;
  // From the thread's first piece on.
  const T *x = nullptr, *residual = nullptr;
  T* h = nullptr;
  RowPiece second[kPieces] = {};

  TIGON_DEVICE void start(int64_t row, int column) {
    x = args.x.data + row * args.x.stride[0] + column;
    residual = args.residual.data + row * args.residual.stride[0] + column;
    h = args.h.data + row * args.h.stride[0] + column;
  }
  TIGON_DEVICE void load(int at, int p, RowPiece& piece) {
    piece = load_piece_stream<kWidth>(x + at);
    second[p] = load_piece_stream<kWidth>(residual + at);
  }
  TIGON_DEVICE void finish(int at, int p, RowPiece& piece, float (&f)[kWidth]) const {
    piece = sum(at, piece, second[p], f);
  }
  TIGON_DEVICE void read(int64_t at, float (&f)[kWidth]) const {
    sum(at, load_piece<kWidth>(x + at), load_piece<kWidth>(residual + at), f);
  }
  TIGON_DEVICE void prefetch(int64_t row) const {
    norm::prefetch_row(args.x, row);
    norm::prefetch_row(args.residual, row);
  }

 private:
  // f is what a reader of h finds there.
  TIGON_DEVICE RowPiece sum(int64_t at, const RowPiece& a, const RowPiece& b,
                            float (&f)[kWidth]) const {
    float g[kWidth];
    unpack_piece(a, f);
    unpack_piece(b, g);
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) f[j] += g[j];
    const RowPiece h_piece = pack_piece<T>(f);
    store_packed(h + at, h_piece);
    unpack_piece(h_piece, f);
    return h_piece;
  }
};

template <class P, int kWidth, int kLanes, int kPieces, int kBlocksPerSm, bool kLongRows>
TIGON_KERNEL(kRowThreads<kLanes>, kBlocksPerSm)
forward_kernel(Forward<P> args, int64_t ahead) {
  norm::forward_rows<kWidth, kLanes, kPieces, kLongRows>(
      norm_of(args), SummedRow<P, kWidth, kPieces>{args}, ahead);
}

// dh, if there is one: on its way with x and dy, or read into registers while the row is reduced.
template <class P, int kWidth, int kLanes, int kPieces, int kStages>
class StreamGradient {
  using T = typename P::Elem;
  using Queue = RowQueue<T, kWidth, kLanes, kPieces, kStages>;
  static constexpr bool kQueued = Queue::kCopies && !is_long({kLanes, kPieces, 1});

 public:
  static constexpr bool kRowInShared = true;

  // slots: shared memory of the third queue.
  TIGON_DEVICE StreamGradient(const View<const T, 2>& dh, Vec<T>* slots)
      : rows_(dh), queue_(slots, dh.data, row_stride()) {}

  TIGON_DEVICE void request(int mine, int slot) {
    if constexpr (kQueued)
      if (is_given()) queue_.request(mine, slot);
  }
  TIGON_DEVICE void start(int64_t row) {
    if (!is_given()) return;
    dh_ = row_at(row);
    if constexpr (!kQueued) {
      const int64_t pieces = pieces_of(row);
      const int first = first_piece<kLanes, kPieces>();
      TIGON_UNROLL
      for (int p = 0; p < kPieces; ++p)
        if (const int i = p * kPieceStride<kLanes> + first; i < pieces)
          in_registers_[p] = load_piece_stream<kWidth>(dh_ + i * kWidth);
    }
  }
  TIGON_DEVICE void add(int p, int slot, float (&dx)[kWidth]) const {
    if (!is_given()) return;
    if constexpr (kQueued)
      add_piece(queue_.at(slot, p), dx);
    else
      add_piece(in_registers_[p], dx);
  }
  TIGON_DEVICE void add_at(int64_t i, float (&dx)[kWidth]) const {
    if (is_given()) add_piece(load_piece<kWidth>(dh_ + i * kWidth), dx);
  }

 private:
  TIGON_DEVICE bool is_given() const { return rows_.data != nullptr; }
  TIGON_DEVICE const T* row_at(int64_t row) const { return rows_.data + row * row_stride(); }
  TIGON_DEVICE int64_t row_stride() const { return rows_.stride[0]; }
  TIGON_DEVICE int64_t pieces_of(int64_t row) const {
    return row < rows_.shape[0] ? rows_.shape[1] / kWidth : 0;
  }
  TIGON_DEVICE static void add_piece(const Piece<T, kWidth>& piece, float (&dx)[kWidth]) {
    float f[kWidth];
    unpack_piece(piece, f);
    TIGON_UNROLL
    for (int j = 0; j < kWidth; ++j) dx[j] += f[j];
  }

  const View<const T, 2>& rows_;
  Queue queue_;
  const T* dh_ = nullptr;  // [H]
  Piece<T, kWidth> in_registers_[kQueued ? 1 : kPieces] = {};
};

template <class P, int kWidth, int kLanes, int kPieces, int kBlocksPerSm, int kStages,
          bool kLongRows>
TIGON_KERNEL(kRowThreads<kLanes>, kBlocksPerSm)
backward_kernel(Backward<P> args, float* partials) {
  TIGON_DYNAMIC_SHARED(Vec<typename P::Elem>, slots);
  using Gradient = StreamGradient<P, kWidth, kLanes, kPieces, kStages>;
  using Queue = RowQueue<typename P::Elem, kWidth, kLanes, kPieces, kStages>;
  norm::backward_rows<kWidth, kLanes, kPieces, kStages, kLongRows>(
      norm_of(args), partials, slots,
      Gradient(args.dh, slots + 2 * Queue::kVectors * (is_fitted(kLanes) ? blockDim.x / 32 : 1)));
}

}  // namespace

// ---- launchers ----------------------------------------------------------------------------------

template <class P>
Status forward(const Forward<P>& args, Stream stream) {
  const int64_t t = args.x.shape[0], h = args.x.shape[1];
  if (Status bad = check_sizes(t, h); !bad.ok()) return bad;
  if (!has_shape(args.x, t, h) || !has_shape(args.residual, t, h) || !has_shape(args.h, t, h) ||
      !has_shape(args.y, t, h))
    return invalid("x, residual, h and y must all be [T, H] with unit stride along H");
  if (Status bad = check_weight(args, t, h); !bad.ok()) return bad;
  if (is_missing(args.x) || is_missing(args.residual) || is_missing(args.h) || is_missing(args.y) ||
      is_missing(args.rstd))
    return invalid("x, residual, h, y or rstd is null: only w may be left out");
  return norm::launch_forward<kForwardVectors, kForwardElements>(
      args, in_vectors(args.w, args.x, args.residual, args.h, args.y), stream,
      [&]<int kWidth, LaunchShape kShape, bool kLongRows> {
        return forward_kernel<P, kWidth, kShape.lanes, kShape.vectors, kShape.blocks_per_sm,
                              kLongRows>;
      });
}

template <class P>
size_t workspace(const Backward<P>& args) {
  return norm::partial_sum_bytes<kBackwardVectors, kBackwardElements>(norm_of(args));
}

template <class P>
Status backward(const Backward<P>& args, Stream stream) {
  const int64_t t = args.h.shape[0], h = args.h.shape[1];
  if (Status bad = check_sizes(t, h); !bad.ok()) return bad;
  if (!has_shape(args.h, t, h) || !has_shape(args.dy, t, h) || !has_shape(args.dx, t, h))
    return invalid("dy, h and dx must all be [T, H] with unit stride along H");
  if (args.dh && !has_shape(args.dh, t, h))
    return invalid("dh must be [T, H], as h, with unit stride along H");
  if (Status bad = check_weight(args, t, h); !bad.ok()) return bad;
  if (is_missing(args.dy) || is_missing(args.h) || is_missing(args.dx) || is_missing(args.rstd))
    return invalid("dy, h, dx or rstd is null: only dh, w and dw may be left out");
  if (Status bad = check_weight_gradient(args, h, workspace(args)); !bad.ok()) return bad;
  const bool vectors =
      in_vectors(args.w, args.dy, args.h, args.dx) && (!args.dh || in_vectors(args.w, args.dh));
  return norm::launch_backward<kBackwardVectors, kBackwardElements>(
      norm_of(args), vectors, stream,
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

}  // namespace tigon::add_rms_norm
