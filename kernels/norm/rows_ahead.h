// SPDX-License-Identifier: Apache-2.0
// Prefetches later rows into L2. The first loads of a block otherwise wait for memory, and the
// other blocks of the multiprocessor do not hide all of that.
#pragma once
#include <cstdint>

#include "kernels/device/async.h"
#include "kernels/device/row_lanes.h"

namespace tigon::norm {

// How many rows ahead a group of lanes prefetches: half of the rows that the device works on at
// once; 0, for none, where that is all rows. Twice as far ahead is as good.
inline int64_t rows_ahead(const LaunchShape& shape, const RowBlock& block, int64_t rows,
                          int64_t multiprocessors = device_limits().multiprocessors) {
  const int64_t in_flight = multiprocessors * block.per_sm * block.rows;
  return shape.vectors > 1 && rows > in_flight ? in_flight / 2 : 0;
}

// Prefetches a row of a tensor [T, H]; one lane calls it. Rows start at multiples of 16 bytes.
template <class Rows>
TIGON_DEVICE void prefetch_row(const Rows& rows, int64_t row) {
  prefetch_bulk(rows.data + row * rows.stride[0],
                static_cast<unsigned>(rows.shape[1] * static_cast<int64_t>(sizeof(*rows.data))));
}

// Prefetches this row of all these tensors, if they have it; one lane calls it. For kernels that
// walk over long rows, of which shared memory holds few. Short rows become slower, and so does
// add_rms_norm.
template <class... Rows>
TIGON_DEVICE void prefetch_rows(int64_t row, const Rows&... rows) {
  ((row < rows.shape[0] ? prefetch_row(rows, row) : void()), ...);
}

}  // namespace tigon::norm
