// SPDX-License-Identifier: Apache-2.0
// Where logits [T, V] lie when the vocabulary is cut into chunks of columns: plain arithmetic.
//
// The memory of dw [V, H] is not written before all logits have been read once, so some of them may
// lie there. A round is as many columns as there is room for at a time. Its left columns are a
// chunk in the scratch; the others are segments in dw's memory, packed from its start. Rounds go
// from the right to the left, and so do the gradients of a round. Those of a segment overwrite its
// rows of dw; the rows behind them are written already. So this segment and those before it must
// end where its rows begin.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/device/integer.h"

namespace tigon::linear_head {

// First columns and strides of logits are multiples of this, 16 bytes of a 16-bit type: the GEMM
// and the row sweep need that for wide accesses.
inline constexpr int64_t kPadding = 8;
inline constexpr int64_t kColumnTile = 256;  // of the GEMM
// Where segments start in the memory of dw: sweeps over logits take 16 bytes at a time.
inline constexpr int64_t kSegmentAlignment = 16;
// The last segment of a round can have the columns whose rows of dw are free: the more columns lie
// in dw's memory, the fewer. It gets a 16th of the columns, because narrow products are slow;
// columns that then find no room go to the next round.
inline constexpr int64_t kLastSegmentPart = 16;

// Whole tiles where that is one at least.
inline int64_t whole_tiles(int64_t columns) {
  return columns < kColumnTile ? columns : columns / kColumnTile * kColumnTile;
}

struct LogitsRoom {
  int64_t column_bytes;     // of a column of logits
  int64_t scratch_columns;  // that the scratch has room for: scratch_columns()
  int64_t dw_row_bytes;     // of dw, with a row for each column; 0: its memory must not be used
};

struct Columns {
  int64_t first, count;
};

// Columns [first, in_dw) are held in the scratch, [in_dw, end) in the memory of dw.
struct Round {
  int64_t first, in_dw, end;
};

// Columns in `bytes` of scratch, of `columns` in all; at least kPadding, or all.
inline int64_t scratch_columns(int64_t columns, int64_t column_bytes, int64_t bytes) {
  const int64_t most = std::max(kPadding, bytes / column_bytes / kPadding * kPadding);
  return most >= columns ? columns : whole_tiles(most);
}

// From which column on the memory of dw has room for those before `end`.
inline int64_t first_in_dw(int64_t end, const LogitsRoom& room) {
  if (room.dw_row_bytes == 0) return end;
  const int64_t last_segment = std::max(2 * kPadding, whole_tiles(end / kLastSegmentPart));
  const int64_t bytes = (end - last_segment) * room.dw_row_bytes - kSegmentAlignment;
  const int64_t most = std::max<int64_t>(0, bytes) / room.column_bytes;
  // From the very first on, it would have none: segments begin behind kSegmentAlignment.
  return std::clamp(round_up(end, kPadding) - most / kPadding * kPadding,
                    std::min(end, 2 * kPadding), end);
}

// The round of the columns before `end`.
inline Round round_before(int64_t end, const LogitsRoom& room) {
  const int64_t scratch = std::min(end, room.scratch_columns);
  const int64_t in_dw = std::max(scratch, first_in_dw(end, room));
  return {round_up(in_dw - scratch, kPadding), in_dw, end};
}

// The segment of a round that ends at column `end`: as wide as its rows leave room for.
inline Columns segment_before(int64_t end, const Round& round, const LogitsRoom& room) {
  const int64_t padded_end = round_up(end, kPadding);
  const int64_t bytes = kSegmentAlignment + (padded_end - round.in_dw) * room.column_bytes;
  const int64_t free_row = round_up(ceil_div(bytes, room.dw_row_bytes), kPadding);
  const int64_t first = std::max(round.in_dw, padded_end - whole_tiles(padded_end - free_row));
  return {first, end - first};
}

// The columns of a round that end at `end` and are held, and computed, together.
inline Columns chunk_before(int64_t end, const Round& round, const LogitsRoom& room) {
  if (end > round.in_dw) return segment_before(end, round, room);
  return {round.first, end - round.first};
}

}  // namespace tigon::linear_head
