// How the columns of the logits [T, V] are cut into chunks: plain arithmetic.
#pragma once
#include <algorithm>
#include <cstdint>

namespace tigon::linear_cross_entropy {

// Columns start, and rows of logits are apart, by a multiple of this: 16 bytes of a 16-bit type,
// without which the GEMM and the row sweep cannot use wide accesses.
inline constexpr int64_t kPadding = 8;
inline constexpr int64_t kColumnTile = 256;  // of the GEMM

inline int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Columns per chunk when each takes `column_bytes` and a chunk at most `bytes`: as many as fit, in
// whole tiles where that is one at least. All chunks but one are computed twice, so that the widest
// pays most.
inline int64_t chunk_columns(int64_t columns, int64_t column_bytes, int64_t bytes) {
  const int64_t most = std::max(kPadding, bytes / column_bytes / kPadding * kPadding);
  if (most >= columns) return columns;
  return most < kColumnTile ? most : most / kColumnTile * kColumnTile;
}

struct Columns {
  int64_t first, count;
};

// Chunk `index` of ceil(columns / chunk). The last one is whole, because its logits are computed
// once; the first has the rest.
inline Columns columns_of(int64_t columns, int64_t chunk, int64_t index) {
  const int64_t others = (columns - 1) / chunk;  // behind the first
  const int64_t rest = std::min(columns, round_up(columns - others * chunk, kPadding));
  if (index == 0) return {0, rest};
  const int64_t first = rest + (index - 1) * chunk;
  return {first, std::min(chunk, columns - first)};
}

}  // namespace tigon::linear_cross_entropy
