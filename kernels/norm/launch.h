// SPDX-License-Identifier: Apache-2.0
// What the launchers of kernels that normalise rows share.
#pragma once
#include <algorithm>

#include "kernels/device/row_lanes.h"
#include "kernels/norm/column_sums.h"
#include "kernels/norm/rows_ahead.h"
#include "kernels/signature/checks.h"

namespace tigon::norm {

// Block indices are 31 bits.
inline Status check_sizes(int64_t t, int64_t h) {
  if (t < 0 || h < 1) return invalid("x must be [T, H] with T >= 0 and H >= 1");
  if (t > INT32_MAX) return unsupported("x has too many rows: at most 2^31 - 1");
  return {};
}

inline Status check_scratch(const Scratch& scratch, size_t needed) {
  if (scratch.bytes < needed) return invalid("scratch is smaller than workspace(args)");
  if (needed > 0 && (scratch.data == nullptr || !is_aligned16(scratch.data)))
    return invalid("scratch is null or not 16-byte aligned");
  return {};
}

// The weight, if there is one, and the saved rstd.
template <class Args>
Status check_weight(const Args& args, int64_t t, int64_t h) {
  if (args.w && !has_shape(args.w, h)) return invalid("w must be [H] with unit stride");
  if (!has_shape(args.rstd, t)) return invalid("rstd must be [T] with unit stride");
  return {};
}
// dw, if it is wanted, and the scratch of a backward pass.
template <class Args>
Status check_weight_gradient(const Args& args, int64_t h, size_t scratch_bytes) {
  if (args.dw && !args.w) return invalid("dw is given without w: give w, or leave out dw");
  if (args.dw && !has_shape(args.dw, h)) return invalid("dw must be [H] with unit stride");
  return check_scratch(args.scratch, scratch_bytes);
}

// The rows and the weight can be read in 16-byte pieces.
template <class T, class... Views>
bool in_vectors(const View<const T, 1>& w, const Views&... views) {
  const bool aligned = is_aligned16(w.data) && (rows_aligned16(views) && ...);
  return aligned && ((views.shape[1] % kVec<T> == 0) && ...);
}

// Returns run.operator()<width of a piece, shape, whether it takes long rows>() of the shape for
// rows of h elements.
template <const auto& kVectors, const auto& kElements, class T, class Run>
auto with_row_kernel(bool vectors, int64_t h, const Run& run) {
  if (!vectors)
    return with_row_shape<kElements>(h, [&]<LaunchShape kShape, bool kLongRows> {
      return run.template operator()<1, kShape, kLongRows>();
    });
  return with_row_shape<kVectors>(h / kVec<T>, [&]<LaunchShape kShape, bool kLongRows> {
    return run.template operator()<kVec<T>, kShape, kLongRows>();
  });
}

// Launches kernel_of.operator()<as above>() with lanes for every row of args.x.
template <const auto& kVectors, const auto& kElements, class Args, class KernelOf>
Status launch_forward(const Args& args, bool vectors, Stream stream, const KernelOf& kernel_of) {
  const int64_t rows = args.x.shape[0], h = args.x.shape[1];
  return with_row_kernel<kVectors, kElements, typename Args::Elem>(
      vectors, h, [&]<int kWidth, LaunchShape kShape, bool kLongRows> {
        const RowBlock block = row_block(kShape, h / kWidth);
        const auto blocks = static_cast<unsigned>(ceil_div(rows, int64_t{block.rows}));
        return launch({dim3(blocks), dim3(block.threads), 0, stream},
                      kernel_of.template operator()<kWidth, kShape, kLongRows>(), args,
                      rows_ahead(kShape, block, rows));
      });
}

// Bytes of rows on their way to shared memory that keep a multiprocessor's part of memory busy.
// More would read rows from many places of memory by turns, which is slower.
inline constexpr size_t kEnoughInFlight = 60 * 1024;

// The blocks in which a fixed grid walks over rows of h elements, and the bytes of shared memory of
// each. Fitted blocks are as few as have enough in flight, and no more than run at once.
struct Walk {
  RowBlock block;
  size_t shared_bytes;
};
template <const auto& kVectors, int kWidth>
Walk walk_of(const LaunchShape& shape, int64_t h) {
  RowBlock block = row_block(shape, h / kWidth);
  if (kWidth == 1) return {block, 0};
  const auto threads = static_cast<size_t>(row_threads(shape.lanes)),
             held = threads * static_cast<size_t>(shape.vectors);  // vectors of a row
  const size_t most = kVectors.shared_bytes(shape);
  const size_t bytes = most / threads * static_cast<size_t>(block.threads);
  if (!is_fitted(shape.lanes) || bytes == 0) return {block, bytes};
  const DeviceLimits& limits = device_limits();
  const size_t room = limits.shared_per_multiprocessor / (bytes + limits.reserved_per_block);
  const size_t in_flight = most / held * std::min(held, static_cast<size_t>(h / kWidth));
  const auto blocks = static_cast<int>(std::min(room, ceil_div(kEnoughInFlight, in_flight)));
  block.per_sm = std::clamp(blocks, 1, block.per_sm);
  return {block, bytes};
}

// Calls run.operator()<as above>(grid) over the rows of args.x, then adds up the partial sums of
// these tensors.
template <const auto& kVectors, const auto& kElements, class Args, class Run>
Status launch_backward(const Args& args, bool vectors, const ColumnSums& first,
                       const ColumnSums& second, Stream stream, const Run& run) {
  const int64_t rows = args.x.shape[0], h = args.x.shape[1];
  unsigned blocks = 0;
  const Status status = with_row_kernel<kVectors, kElements, typename Args::Elem>(
      vectors, h, [&]<int kWidth, LaunchShape kShape, bool kLongRows> {
        const Walk walk = walk_of<kVectors, kWidth>(kShape, h);
        blocks = column_sum_blocks(walk.block, rows);
        const LaunchConfig grid{dim3(blocks), dim3(walk.block.threads), walk.shared_bytes, stream};
        return run.template operator()<kWidth, kShape, kLongRows>(grid);
      });
  if (!status.ok()) return status;
  return launch_partial_sums(blocks, h, first, second, stream);
}
// The same with dw alone, whose partial sums are the scratch: run.operator()<as above>(grid, them).
template <const auto& kVectors, const auto& kElements, class Args, class Run>
Status launch_backward(const Args& args, bool vectors, Stream stream, const Run& run) {
  float* const partials = args.dw ? static_cast<float*>(args.scratch.data) : nullptr;
  return launch_backward<kVectors, kElements>(
      args, vectors, {partials, args.dw.data}, {}, stream,
      [&]<int kWidth, LaunchShape kShape, bool kLongRows>(const LaunchConfig& grid) {
        return run.template operator()<kWidth, kShape, kLongRows>(grid, partials);
      });
}

// Partial sums of a weight gradient over t rows of h: enough for aligned rows and for others, so
// that a workspace does not depend on addresses.
template <const auto& kVectors, const auto& kElements, class T>
int64_t partial_sums(int64_t t, int64_t h) {
  const auto blocks = [&]<int kWidth, LaunchShape kShape, bool> {
    return column_sum_blocks(walk_of<kVectors, kWidth>(kShape, h).block, t);
  };
  return std::max(with_row_kernel<kVectors, kElements, T>(true, h, blocks),
                  with_row_kernel<kVectors, kElements, T>(false, h, blocks)) *
         h;
}
template <const auto& kVectors, const auto& kElements, class Args>
size_t partial_sum_bytes(const Args& args) {
  if (!args.dw) return 0;
  const int64_t t = args.x.shape[0], h = args.x.shape[1];
  return static_cast<size_t>(partial_sums<kVectors, kElements, typename Args::Elem>(t, h)) *
         sizeof(float);
}

}  // namespace tigon::norm
