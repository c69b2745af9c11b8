// How rms_norm lays a row over threads, and what forward and backward do with one alike.
#pragma once
#include <iterator>

#include "kernels/device/device.h"
#include "kernels/device/pieces.h"

namespace tigon::rms_norm {

// `lanes` threads keep `pieces` pieces of the row each. Up to 32 lanes need no barrier, and 128
// threads share a block; more lanes are a block. The first shape of a table that holds the row is
// taken; what even the last one cannot hold is read twice. A piece is 16 bytes, or one element
// where rows are not aligned.
struct Shape {
  int lanes, pieces;
  int blocks_per_sm;  // that the registers must let run at once
};
template <int kLanes>
inline constexpr int kThreads = kLanes < 128 ? 128 : kLanes;
template <int kLanes>
inline constexpr int kRowsPerBlock = kThreads<kLanes> / kLanes;

// Returns run.operator()<lanes, pieces, blocks per SM, is last>() of the shape for a row of
// `pieces` pieces.
template <const auto& kShapes, size_t kIndex = 0, class Run>
auto with_shape(int64_t pieces, const Run& run) {
  constexpr Shape kShape = kShapes[kIndex];
  constexpr bool kLast = kIndex + 1 == std::size(kShapes);
  if constexpr (!kLast)
    if (pieces > int64_t{kShape.lanes} * kShape.pieces)
      return with_shape<kShapes, kIndex + 1>(pieces, run);
  return run.template operator()<kShape.lanes, kShape.pieces, kShape.blocks_per_sm, kLast>();
}

template <int kLanes>
TIGON_DEVICE float row_sum(float v) {
  if constexpr (kLanes <= 32)
    return warp_reduce<kLanes>(v, Sum{});
  else
    return block_sum<kLanes>(v);
}

// A thread keeps one sum per element of a piece: eight short chains instead of a long one.
template <int kWidth>
TIGON_DEVICE void add_products(const float (&a)[kWidth], const float (&b)[kWidth],
                               float (&sums)[kWidth]) {
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) sums[j] += a[j] * b[j];
}
template <int kWidth>
TIGON_DEVICE float sum_of(const float (&f)[kWidth]) {
  float sum = f[0];
  TIGON_UNROLL
  for (int j = 1; j < kWidth; ++j) sum += f[j];
  return sum;
}

// Piece i of w; zero without a weight.
template <int kWidth, class Args>
TIGON_DEVICE auto load_weight(const Args& args, int64_t i) {
  return args.w.data == nullptr ? Piece<typename Args::Elem, kWidth>{}
                                : load_piece<kWidth>(args.w.data + i * kWidth);
}

// All pieces of w that belong to this lane.
template <int kWidth, int kLanes, int kPieces, class Args>
TIGON_DEVICE void load_weights(const Args& args, int lane,
                               Piece<typename Args::Elem, kWidth> (&weight)[kPieces]) {
  TIGON_UNROLL
  for (int p = 0; p < kPieces; ++p)
    if (const int i = p * kLanes + lane; i < args.x.shape[1] / kWidth)
      weight[p] = load_weight<kWidth>(args, i);
}

// f *= offset + w, where there is a weight.
template <class Args, int kWidth>
TIGON_DEVICE void multiply_weight(const Args& args, const Piece<typename Args::Elem, kWidth>& w,
                                  float (&f)[kWidth]) {
  if (args.w.data == nullptr) return;
  float scale[kWidth];
  unpack_piece(w, scale);
  TIGON_UNROLL
  for (int j = 0; j < kWidth; ++j) f[j] *= args.offset + scale[j];
}

}  // namespace tigon::rms_norm
