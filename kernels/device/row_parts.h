// SPDX-License-Identifier: Apache-2.0
// Launch shapes of kernels that deal a row out to one block or to several, by its length alone: its
// results have the same bits in every batch. The first shape of such a table is for short rows; of
// the others each has twice the blocks of the one before. Host side.
#pragma once
#include <climits>
#include <cstdint>

#include "kernels/device/launch_table.h"

namespace tigon {

// Rows of up to so many bytes would leave most threads of a larger block without work.
inline constexpr int64_t kSmallRow = 16384;

// Whether a grid has blocks for so many rows.
constexpr bool has_blocks_for(const LaunchShape& shape, int64_t rows) {
  return rows <= INT_MAX / shape.cluster;
}

// Index of the shape to take for rows of so many bytes: the fewest blocks whose parts of a row have
// at most `part` bytes, of those that can_take(index). `name` as chosen_shape() has it.
template <const auto& kTable, class CanTake>
size_t shape_by_parts(int64_t row_bytes, int64_t part, const char* name, const CanTake& can_take) {
  size_t usual = row_bytes <= kSmallRow ? 0 : 1;
  while (usual > 0 && usual + 1 < std::size(kTable.shapes) && can_take(usual + 1) &&
         row_bytes > part * kTable.shapes[usual].cluster)
    ++usual;
  return chosen_shape<kTable>(row_bytes / 16, usual, can_take, name);
}

}  // namespace tigon
