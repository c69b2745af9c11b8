// SPDX-License-Identifier: Apache-2.0
// softmax            y = exp(x - max_V x) / sum_V exp(x - max_V x)
// softmax backward   dx = y * (dy - sum_V y * dy)
//
// Rows are read from memory once and written once. Wide rows take forward_held.h and
// backward_ring.h; narrow rows, and tensors that are not aligned alike, take row_walk.h. Statistics
// are fp32. Bytes: forward 2*T*V*elem, backward 3*T*V*elem.
#include "kernels/softmax/softmax.h"

#include <algorithm>
#include <climits>

#include "kernels/device/alignment.h"
#include "kernels/device/device_limits.h"
#include "kernels/device/exp_sum.h"
#include "kernels/signature/checks.h"
#include "kernels/signature/instantiate.h"
#include "kernels/softmax/backward_ring.h"
#include "kernels/softmax/forward_held.h"
#include "kernels/softmax/row_walk.h"

namespace tigon::softmax {
namespace {

// For rows too short to be worth holding (kForwardHeld), and for rows too long to be held.
constexpr RowTable<5> kForwardVectors = {
    .name = "softmax.forward.vectors",
    .shapes =
        {
            {.lanes = 32, .vectors = 1, .blocks_per_sm = 8},
            {.lanes = 32, .vectors = 4, .blocks_per_sm = 8},
            {.lanes = 128, .vectors = 8, .blocks_per_sm = 6},
            {.lanes = 512, .vectors = 8, .blocks_per_sm = 1},
            {.lanes = 512, .vectors = 8, .blocks_per_sm = 1, .cluster = 8},
        },
};
// Of rows that are read as single elements; `blocks` of 128 threads per multiprocessor.
constexpr RowTable<6> element_shapes(const char* name, int blocks) {
  return {
      .name = name,
      .shapes =
          {
              {.lanes = 32, .vectors = 8, .blocks_per_sm = 8},
              {.lanes = 128, .vectors = 8, .blocks_per_sm = blocks},
              {.lanes = 512, .vectors = 8, .blocks_per_sm = 2},
              {.lanes = 512, .vectors = 8, .blocks_per_sm = 2, .cluster = 2},
              {.lanes = 512, .vectors = 8, .blocks_per_sm = 2, .cluster = 4},
              {.lanes = 512, .vectors = 8, .blocks_per_sm = 2, .cluster = 8},
          },
  };
}
constexpr RowTable<6> kForwardElements = element_shapes("softmax.forward.elements", 8);
// Pieces that a block takes alone; longer rows are shared by the blocks of a cluster.
constexpr int64_t kForwardAlone = 4096;
// For rows that a block or a cluster holds on chip. The first shape that can hold the row is taken.
// Two or more blocks per multiprocessor hide each other's reductions; one block of 1024 threads is
// for devices without clusters.
constexpr ShapeTable<8> kForwardHeld = {
    .name = "softmax.forward.held",
    .shapes =
        {
            {.lanes = 256, .vectors = 8, .blocks_per_sm = 4},
            {.lanes = 320, .vectors = 8, .blocks_per_sm = 3},
            {.lanes = 512, .vectors = 8, .blocks_per_sm = 2},
            {.lanes = 256, .vectors = 8, .blocks_per_sm = 4, .cluster = 4},
            {.lanes = 256, .vectors = 8, .blocks_per_sm = 4, .cluster = 8},
            {.lanes = 512, .vectors = 8, .blocks_per_sm = 2, .cluster = 4},
            {.lanes = 512, .vectors = 8, .blocks_per_sm = 2, .cluster = 8},
            {.lanes = 1024, .vectors = 8, .blocks_per_sm = 1},
        },
};
// Bytes of later rows in flight to L2. Twice as many bytes are slower for some row lengths, faster
// for none.
constexpr int64_t kBytesAhead = int64_t{2} << 20;
// Wide rows are faster in few big blocks than in clusters of many small ones.
constexpr RowTable<9> kBackwardVectors = {
    .name = "softmax.backward.vectors",
    .shapes =
        {
            {.lanes = 32, .vectors = 1, .blocks_per_sm = 6},
            {.lanes = 32, .vectors = 4, .blocks_per_sm = 6},
            {.lanes = 128, .vectors = 4, .blocks_per_sm = 6},
            {.lanes = 512, .vectors = 4, .blocks_per_sm = 2},
            {.lanes = 512, .vectors = 4, .blocks_per_sm = 2, .cluster = 2},
            {.lanes = 512, .vectors = 10, .blocks_per_sm = 1, .cluster = 2},
            {.lanes = 512, .vectors = 10, .blocks_per_sm = 1, .cluster = 4},
            {.lanes = 512, .vectors = 8, .blocks_per_sm = 1},
            {.lanes = 512, .vectors = 8, .blocks_per_sm = 1, .cluster = 8},
        },
};
constexpr RowTable<6> kBackwardElements = element_shapes("softmax.backward.elements", 6);
// As kForwardAlone; of two tensors, so half as many pieces.
constexpr int64_t kBackwardAlone = 2048;
constexpr int64_t kBackwardAloneWide = 5120;  // of rows that are wider than the ring's
// The row may fill all slots of each warp and leave none for the next row: that is as fast as
// sharing the row in a cluster of two.
constexpr ShapeTable<1> kBackwardRings = {
    .name = "softmax.backward.rings",
    .shapes =
        {
            {.lanes = 512, .vectors = 2, .blocks_per_sm = 1, .stages = 7},
        },
};

template <class T>
TIGON_DEVICE T* row_of(const View<T, 2>& v, int64_t row) {
  return v.data + row * v.stride[0];
}

// The exponentials of a piece, added to a row's.
template <class T, int kWidth>
TIGON_DEVICE void add_piece(const Piece<T, kWidth>& piece, ExpSum& total) {
  float f[kWidth];
  unpack_piece(piece, f);
  add(total, f);
}
template <class T, int kWidth>
TIGON_DEVICE void store_y(const Piece<T, kWidth>& piece, float max, float inverse, T* y) {
  float f[kWidth];
  unpack_piece(piece, f);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) f[j] = fast_exp_flushed(f[j] - max) * inverse;
  store_piece(y, f);
}

template <class P, int kWidth, int kLanes, int kPieces, int kBlocksPerSm, bool kLongRows>
TIGON_KERNEL(kRowThreads<kLanes>, kBlocksPerSm)
forward_kernel(Forward<P> args) {
  using T = typename P::Elem;
  using Source = RowSource<T, kWidth, kLanes, kPieces>;
  using RowPiece = Piece<T, kWidth>;
  TIGON_DYNAMIC_SHARED(Vec<T>, slots);
  RowWalk<kWidth, kLanes> walk(args.x.shape[0], args.x.shape[1]);
  RowBuffer<T, kWidth, kLanes, kPieces> x(slots);

  const T* next_row = row_of(args.x, walk.row);
  LanePart next = walk.part(next_row);
  request_first(next, Source{x, nullptr, next_row});
  if (next.end >= 0) x.next_end = load(next_row + next.end);

  for (int parity = 0; walk.row < walk.rows; parity ^= 1) {
    const uint32_t row = walk.row;
    const T* x_row = row_of(args.x, row);  // [V]
    LanePart part = next;
    x.end = x.next_end;
    walk.row += walk.step;
    next_row = row_of(args.x, walk.row);
    next = walk.part(next_row);
    const Source source = {x, x_row, next_row};

    ExpSum total;
    receive_row<kLongRows>(
        part, next, [&](const RowPiece& piece) { add_piece(piece, total); }, source);
    if (part.end >= 0) add(total, {to_float(x.end)});
    if (next.end >= 0) x.next_end = load(next_row + next.end);
    total = walk.reduce(total, JoinExpSums{}, parity);

    const float max = total.max, inverse = fast_div(1.0f, total.sum);
    T* y_row = row_of(args.y, row);  // [V]
    const auto store_at = [&](int i, const RowPiece& piece) {
      store_y(piece, max, inverse, y_row + part.column + i * kWidth);
    };
    for_each_piece<kLongRows>(part, store_at, source);
    if (part.end >= 0)
      store(y_row + part.end, from_float<T>(fast_exp_flushed(to_float(x.end) - max) * inverse));
  }
}

// y * dy of a piece, added to a row's.
template <class T, int kWidth>
TIGON_DEVICE void add_product(const Piece<T, kWidth>& y, const Piece<T, kWidth>& dy, float& sum) {
  float f[kWidth], g[kWidth], products = 0.0f;
  unpack_piece(y, f);
  unpack_piece(dy, g);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) products += f[j] * g[j];
  sum += products;
}
template <class T, int kWidth>
TIGON_DEVICE void store_dx(const Piece<T, kWidth>& y, const Piece<T, kWidth>& dy, float sum,
                           T* dx) {
  float f[kWidth], g[kWidth];
  unpack_piece(y, f);
  unpack_piece(dy, g);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) f[j] *= g[j] - sum;
  store_piece(dx, f);
}

template <class P, int kWidth, int kLanes, int kPieces, int kBlocksPerSm, bool kLongRows>
TIGON_KERNEL(kRowThreads<kLanes>, kBlocksPerSm)
backward_kernel(Backward<P> args) {
  using T = typename P::Elem;
  using Source = RowSource<T, kWidth, kLanes, kPieces>;
  using RowPiece = Piece<T, kWidth>;
  TIGON_DYNAMIC_SHARED(Vec<T>, slots);
  RowWalk<kWidth, kLanes> walk(args.y.shape[0], args.y.shape[1]);
  RowBuffer<T, kWidth, kLanes, kPieces> y(slots), dy(slots + kPieces * kRowThreads<kLanes>);

  const T *next_y = row_of(args.y, walk.row), *next_dy = row_of(args.dy, walk.row);
  LanePart next = walk.part(next_y);
  const auto load_next_end = [&] {
    if (next.end < 0) return;
    y.next_end = load(next_y + next.end);
    dy.next_end = load(next_dy + next.end);
  };
  request_first(next, Source{y, nullptr, next_y}, Source{dy, nullptr, next_dy});
  load_next_end();

  for (int parity = 0; walk.row < walk.rows; parity ^= 1) {
    const uint32_t row = walk.row;
    const T *y_row = row_of(args.y, row), *dy_row = row_of(args.dy, row);  // [V]
    LanePart part = next;
    y.end = y.next_end;
    dy.end = dy.next_end;
    walk.row += walk.step;
    next_y = row_of(args.y, walk.row);
    next_dy = row_of(args.dy, walk.row);
    next = walk.part(next_y);
    load_next_end();  // any later, and f32 spills on sm_80
    const Source of_y = {y, y_row, next_y}, of_dy = {dy, dy_row, next_dy};

    float sum = 0.0f;
    const auto add = [&](const RowPiece& y_piece, const RowPiece& dy_piece) {
      add_product(y_piece, dy_piece, sum);
    };
    receive_row<kLongRows>(part, next, add, of_y, of_dy);
    if (part.end >= 0) sum += to_float(y.end) * to_float(dy.end);
    sum = walk.reduce(sum, Sum{}, parity);

    T* dx_row = row_of(args.dx, row);  // [V]
    const auto store_at = [&](int i, const RowPiece& y_piece, const RowPiece& dy_piece) {
      store_dx(y_piece, dy_piece, sum, dx_row + part.column + i * kWidth);
    };
    for_each_piece<kLongRows>(part, store_at, of_y, of_dy);
    if (part.end >= 0)
      store(dx_row + part.end, from_float<T>(to_float(y.end) * (to_float(dy.end) - sum)));
  }
}

// ---- launchers ----------------------------------------------------------------------------------

// Blocks per row. `alone` is the most that one takes.
int cluster_of(int64_t pieces, int64_t alone) {
  int cluster = 1;
  if (pieces > alone && device_limits().clusters)
    while (cluster < static_cast<int>(kMaxCluster) && pieces > cluster * alone) cluster *= 2;
  return cluster;
}

// kernel_of.operator()<shape, whether it takes longer rows>() is the kernel of a shape; it reads
// `inputs` tensors.
template <class T, int kWidth, const auto& kTable, class Args, class KernelOf>
Status launch_walk(const Args& args, int64_t rows, int64_t columns, int64_t alone, int inputs,
                   Stream stream, const KernelOf& kernel_of) {
  const int64_t pieces = columns / kWidth;
  const size_t shape = row_shape<kTable>(pieces, cluster_of(pieces, alone));
  const LaunchShape& chosen = kTable.shapes[shape];
  const unsigned cluster = has_clusters_for(chosen) ? static_cast<unsigned>(chosen.cluster) : 1;
  const auto run = [&]<LaunchShape kShape, bool kLongRows> {
    constexpr int kLanes = kShape.lanes, kThreads = kRowThreads<kLanes>;
    const auto kernel = kernel_of.template operator()<kShape, kLongRows>();
    size_t slots = kWidth > 1 ? static_cast<size_t>(inputs) * kShape.vectors * kThreads : 0;
    LaunchConfig config{.grid = dim3(cluster),
                        .block = dim3(kThreads),
                        .shared_bytes = slots * sizeof(Vec<T>),
                        .stream = stream,
                        .cluster = cluster};
    const int64_t blocks = ceil_div(rows, int64_t{kRowsPerBlock<kLanes>}) * cluster;
    config.grid =
        dim3(static_cast<unsigned>(std::min<int64_t>(blocks, resident_blocks(config, kernel))));
    return launch(config, kernel, args);
  };
  return run_row_shape<kTable>(shape, run);
}

// Index of the shape to take for rows of so many vectors, of those that `holds`; the number of
// shapes: none.
template <const auto& kTable, class Holds>
size_t shape_of(int64_t vectors, const Holds& holds) {
  const auto can_take = [&](size_t i) { return holds(kTable.shapes[i], vectors); };
  const size_t usual = first_shape<kTable>(can_take);
  return usual == std::size(kTable.shapes) ? usual : chosen_shape<kTable>(vectors, usual, can_take);
}

Status check_sizes(int64_t t, int64_t v) {
  if (t < 0 || v < 1) return invalid("softmax: tensors must be [T >= 0, V >= 1]");
  if (t > INT_MAX) return unsupported("softmax: there may be fewer than 2^31 rows");
  if (v > INT_MAX) return unsupported("softmax: a row must have fewer than 2^31 columns");
  return {};
}

}  // namespace

template <class P>
Status forward(const Forward<P>& args, Stream stream) {
  using T = typename P::Elem;
  const int64_t t = args.x.shape[0], v = args.x.shape[1];
  if (Status bad = check_sizes(t, v); !bad.ok()) return bad;
  if (!has_shape(args.x, t, v) || !has_shape(args.y, t, v))
    return invalid("softmax: x and y must both be [T, V] with unit stride along V");
  if (is_missing(args.x) || is_missing(args.y)) return invalid("softmax: x or y is null");
  const auto run = [&]<int kWidth, const auto & kTable> {
    return launch_walk<T, kWidth, kTable>(
        args, t, v, kForwardAlone, 1, stream, [&]<LaunchShape kShape, bool kLongRows> {
          return forward_kernel<P, kWidth, kShape.lanes, kShape.vectors, kShape.blocks_per_sm,
                                kLongRows>;
        });
  };
  if (differ_in_alignment(args.x, args.y)) return run.template operator()<1, kForwardElements>();
  const int64_t vectors = v / kVec<T>;
  if (const size_t shape = shape_of<kForwardHeld>(vectors, can_hold);
      shape < std::size(kForwardHeld.shapes))
    return with_shape<kForwardHeld>(shape, [&]<LaunchShape kShape> {
      return launch_held(kShape, t, vectors, kBytesAhead, stream,
                         forward_held_kernel<P, kShape.lanes, kShape.vectors, kShape.blocks_per_sm>,
                         args);
    });
  return run.template operator()<kVec<T>, kForwardVectors>();
}

template <class P>
Status backward(const Backward<P>& args, Stream stream) {
  using T = typename P::Elem;
  const int64_t t = args.y.shape[0], v = args.y.shape[1];
  if (Status bad = check_sizes(t, v); !bad.ok()) return bad;
  if (!has_shape(args.dy, t, v) || !has_shape(args.y, t, v) || !has_shape(args.dx, t, v))
    return invalid("softmax: dy, y and dx must all be [T, V] with unit stride along V");
  if (is_missing(args.dy) || is_missing(args.y) || is_missing(args.dx))
    return invalid("softmax: dy, y or dx is null");
  const auto run = [&]<int kWidth, const auto & kTable>(int64_t alone) {
    return launch_walk<T, kWidth, kTable>(
        args, t, v, alone, 2, stream, [&]<LaunchShape kShape, bool kLongRows> {
          return backward_kernel<P, kWidth, kShape.lanes, kShape.vectors, kShape.blocks_per_sm,
                                 kLongRows>;
        });
  };
  if (differ_in_alignment(args.y, args.dy) || differ_in_alignment(args.y, args.dx))
    return run.template operator()<1, kBackwardElements>(kBackwardAlone);
  const int64_t vectors = v / kVec<T>;
  if (const size_t shape = shape_of<kBackwardRings>(vectors, ring_holds);
      shape < std::size(kBackwardRings.shapes))
    return with_shape<kBackwardRings>(shape, [&]<LaunchShape kShape> {
      return launch_ring(kShape, t, stream,
                         backward_ring_kernel<P, kShape.lanes, kShape.vectors, kShape.blocks_per_sm,
                                              kShape.stages>,
                         args);
    });
  return run.template operator()<kVec<T>, kBackwardVectors>(
      vectors > 2 * kBackwardAlone ? kBackwardAloneWide : kBackwardAlone);
}

#if TIGON_IN_PART(1)
TIGON_INSTANTIATE(forward, Forward);
#endif
#if TIGON_IN_PART(2)
TIGON_INSTANTIATE(backward, Backward);
#endif

}  // namespace tigon::softmax
