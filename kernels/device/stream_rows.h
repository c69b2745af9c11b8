// Runs an elementwise function over tensors [T, F] whose rows may lie apart: each thread reads one
// piece of every input and writes one piece of every output.
#pragma once
#include <algorithm>
#include <type_traits>

#include "kernels/device/device.h"
#include "kernels/device/pieces.h"
#include "kernels/signature/checks.h"

namespace tigon {

// One 16-byte piece per thread and no grid-stride loop: on an H200 a copy made this way is 7%
// faster than one that loops.
inline constexpr int kStreamThreads = 256;
inline constexpr int64_t kMaxStreamGridRows = 65535;  // limit of gridDim.y; blocks loop beyond it

// Compute::piece<kWidth>(args, row, column) computes kWidth elements from `column` on.
template <class Compute, class Args, int kWidth>
TIGON_KERNEL(kStreamThreads, Compute::kBlocksPerSm)
stream_kernel(Args args, int64_t rows, int64_t columns) {
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kStreamThreads + threadIdx.x) * kWidth;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    if (first + (planted("stream_rows.tail_unmasked") ? 1 : kWidth) <= columns)
      Compute::template piece<kWidth>(args, row, first);
    else if (!planted("stream_rows.tail_dropped"))
      for (int64_t column = first; column < columns; ++column)
        Compute::template piece<1>(args, row, column);
  }
}

// Runs over all columns of all rows of `first` and `rest`, all [T, F]; as over one long row when
// none of them has gaps between its rows.
template <class Compute, class Args, class View, class... Views>
Status stream_rows(const Args& args, Stream stream, const View& first, const Views&... rest) {
  if (is_missing(first) || (is_missing(rest) || ...))
    return invalid("a tensor is null: all tensors are required");
  const int64_t t = first.shape[0], f = first.shape[1];
  if (t == 0) return {};
  const bool flat = first.contiguous() && (rest.contiguous() && ...);
  const int64_t rows = flat ? 1 : t, columns = flat ? t * f : f;
  const bool aligned = planted("stream_rows.alignment_unchecked") ||
                       (flat ? is_aligned16(first.data) && (is_aligned16(rest.data) && ...)
                             : rows_aligned16(first) && (rows_aligned16(rest) && ...));

  const auto run = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
    const int64_t per_block = static_cast<int64_t>(kStreamThreads) * kWidth;
    const dim3 grid(static_cast<unsigned>((columns + per_block - 1) / per_block),
                    static_cast<unsigned>(std::min(rows, kMaxStreamGridRows)));
    return launch({grid, dim3(kStreamThreads), 0, stream}, stream_kernel<Compute, Args, kWidth>,
                  args, rows, columns);
  };
  using T = std::remove_const_t<typename View::Elem>;
  return aligned ? run(std::integral_constant<int, kVec<T>>{})
                 : run(std::integral_constant<int, 1>{});
}

}  // namespace tigon
