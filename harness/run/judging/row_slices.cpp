// SPDX-License-Identifier: Apache-2.0
// Launches on slices.
#include "harness/run/judging/row_slices.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/run/memory/arena.h"
#include "harness/run/memory/stop.h"

namespace tigon {

namespace {

constexpr int64_t kChunkBytes = int64_t{64} << 20;  // that the host holds of a tensor at a time

// Calls f(first, count) for all rows of the tensor, a chunk at a time.
template <class F>
void for_chunks(const TiledTensor& t, F f) {
  const int64_t step = std::max<int64_t>(1, kChunkBytes / row_bytes(t));
  for (int64_t r = 0; r < t.rows(); r += step) f(r, std::min(step, t.rows() - r));
}

// Rows of a slice. A row lies as far off its alignment as in the whole, so that kernels load it in
// the same vectors: 16 rows are a multiple of 16 bytes.
int64_t slice_rows(const HugeLimits& limits, const TiledLaunch& whole) {
  int64_t widest = 1;
  for (const TiledTensor& t : whole.tensors())
    if (t.row_wise()) widest = std::max(widest, t.row_elements());
  return std::max<int64_t>(limits.slice_elements / widest / 16, 1) * 16;
}

// Inputs of the rows from `first` on, outputs poisoned.
void fill_slice(const HugeCase& huge, const TiledLaunch& whole, int64_t first, TiledLaunch* slice) {
  for (TiledTensor& t : slice->tensors()) {
    if (!t.is_input()) {
      t.poison(kPoisons[1]);
      continue;
    }
    const TiledTensor& from = *whole.find(t.info().name);
    const int64_t offset = from.row_wise() ? first : 0;
    for_chunks(t, [&](int64_t row, int64_t count) {
      t.upload(row, huge.input_rows(from, offset + row, count));
    });
  }
}

void require_equal(const HugeCase& huge, const TiledTensor& whole, int64_t first,
                   const TiledTensor& slice) {
  for_chunks(slice, [&](int64_t row, int64_t count) {
    const auto a = whole.download(first + row, count), b = slice.download(row, count);
    if (a == b) return;
    const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
    throw Stop{Verdict::kIncorrectNumerical,
               fmt::format("{}: row {} of {} differs at element {} from a launch on rows {} to {}",
                           slice.info().name, first + row + at / row_bytes(slice), huge.rows,
                           at % row_bytes(slice) / static_cast<int64_t>(size_of(slice.dtype())),
                           first, first + slice.rows() - 1)};
  });
}

}  // namespace

void require_equal_slices(const HugeCase& huge, const HugeLimits& limits,
                          const TiledLaunch& whole) {
  const int64_t step = slice_rows(limits, whole);
  for (int64_t first = 0; first < huge.rows; first += step) {
    TiledLaunch slice(huge.c, *huge.op, *huge.pass, std::min(step, huge.rows - first));
    fill_slice(huge, whole, first, &slice);
    slice.run(*huge.implementation);
    for (const TiledTensor& t : slice.tensors())
      if (t.is_output() && t.row_wise()) require_equal(huge, *whole.find(t.info().name), first, t);
  }
}

}  // namespace tigon
