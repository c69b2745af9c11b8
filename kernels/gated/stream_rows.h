// SPDX-License-Identifier: Apache-2.0
// Runs an elementwise function over tensors [T, F] whose rows may be strided: each thread reads one
// vector of every input and writes one of every output.
#pragma once
#include <algorithm>
#include <type_traits>

#include "kernels/device/device.h"
#include "kernels/device/launch_table.h"
#include "kernels/device/pieces.h"
#include "kernels/signature/checks.h"

namespace tigon {

// One vector per thread: a grid-stride loop is slower. 256 threads a block, of which
// `blocks_per_sm` fit; the other shapes are for `tigon tune` and leave a thread as many registers
// or a few more.
constexpr ShapeTable<3> stream_shapes(const char* name, int blocks_per_sm) {
  return {
      .name = name,
      .shapes =
          {
              {.lanes = 256, .vectors = 1, .blocks_per_sm = blocks_per_sm},
              {.lanes = 128, .vectors = 1, .blocks_per_sm = 2 * blocks_per_sm},
              {.lanes = 512, .vectors = 1, .blocks_per_sm = blocks_per_sm / 2},
          },
  };
}
inline constexpr int64_t kMaxStreamGridRows = 65535;  // limit of gridDim.y; blocks loop beyond it

// Compute::piece<kWidth>(args, row, column) computes kWidth elements from `column` on.
template <class Compute, class Args, int kWidth, int kThreads, int kBlocksPerSm>
TIGON_KERNEL(kThreads, kBlocksPerSm)
stream_kernel(Args args, int64_t rows, int64_t columns) {
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kWidth;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    if (first + kWidth <= columns)
      Compute::template piece<kWidth>(args, row, first);
    else
      for (int64_t column = first; column < columns; ++column)
        Compute::template piece<1>(args, row, column);
  }
}

// Runs over all columns of all rows of `first` and `others`, all [T, F]; as over one long row when
// none of them has gaps between its rows. Compute::kShapes are stream_shapes() of its own; single
// elements take the first.
template <class Compute, class Args, class View, class... Views>
Status stream_rows(const Args& args, Stream stream, const View& first, const Views&... others) {
  if (is_missing(first) || (is_missing(others) || ...))
    return invalid("a tensor is null: all tensors are required");
  const int64_t t = first.shape[0], f = first.shape[1];
  const bool flat = first.contiguous() && (others.contiguous() && ...);
  const int64_t rows = flat ? 1 : t, columns = flat ? t * f : f;
  const bool aligned = flat ? is_aligned16(first.data) && (is_aligned16(others.data) && ...)
                            : rows_aligned16(first) && (rows_aligned16(others) && ...);

  const auto run = [&]<int kWidth, LaunchShape kShape> {
    constexpr int kThreads = kShape.lanes;
    const dim3 grid(static_cast<unsigned>(ceil_div(columns, int64_t{kThreads} * kWidth)),
                    static_cast<unsigned>(std::min(rows, kMaxStreamGridRows)));
    return launch({grid, dim3(kThreads), 0, stream},
                  stream_kernel<Compute, Args, kWidth, kThreads, kShape.blocks_per_sm>, args, rows,
                  columns);
  };
  if (!aligned) return run.template operator()<1, Compute::kShapes.shapes[0]>();
  constexpr int kWidth = kVec<std::remove_const_t<typename View::Elem>>;
  const size_t shape =
      chosen_shape<Compute::kShapes>(ceil_div(f, int64_t{kWidth}), 0, [](size_t) { return true; });
  return with_shape<Compute::kShapes>(
      shape, [&]<LaunchShape kShape> { return run.template operator()<kWidth, kShape>(); });
}

}  // namespace tigon
