// How the columns of the logits [T, V] are cut into chunks, and which are kept in the memory of dw:
// plain arithmetic.
//
// Chunks from the left take turns in the scratch, and all but the last of these are computed again
// for their gradients. Those behind them, here pieces, lie in the memory of dw [V, H] until it is
// written. Gradients are taken from the right: a piece's rows of dw, and all after them, are
// written while it and the pieces before it are still there, so these must end where those rows
// begin.
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

// Where pieces start in the memory of dw: sweeps over logits take 16 bytes at a time.
inline constexpr int64_t kPieceAlignment = 16;
// With more pieces their products would be small, and columns computed twice are not many fewer.
inline constexpr int64_t kMostPieces = 32;

// Columns per chunk when each takes `column_bytes` and a chunk at most `bytes`: as many as fit, in
// whole tiles where that is one at least. One of them is not computed twice: a wide one pays.
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

struct VocabularyCut {
  int64_t columns = 0;     // all
  int64_t chunk = 0;       // most columns of a chunk in the scratch
  int64_t in_scratch = 0;  // columns whose chunks take turns there
  int64_t piece = 0;       // columns of a piece behind these; the last may have fewer

  int64_t chunks_in_scratch() const { return (in_scratch + chunk - 1) / chunk; }
  int64_t pieces() const { return piece == 0 ? 0 : (columns - in_scratch + piece - 1) / piece; }
  int64_t chunks() const { return chunks_in_scratch() + pieces(); }

  // From left to right.
  Columns at(int64_t index) const {
    const int64_t before = chunks_in_scratch();
    if (index < before) return columns_of(in_scratch, chunk, index);
    const int64_t first = in_scratch + (index - before) * piece;
    return {first, std::min(piece, columns - first)};
  }
};

// Whether the pieces fit, when a column of the logits has `column_bytes` and a row of dw
// `dw_row_bytes`. From piece to piece both sides grow by a constant: the first and the last decide.
inline bool pieces_fit(const VocabularyCut& cut, int64_t column_bytes, int64_t dw_row_bytes) {
  for (const int64_t i : {int64_t{0}, cut.pieces() - 1}) {
    const int64_t end = kPieceAlignment + (i + 1) * cut.piece * column_bytes;
    if (end > (cut.in_scratch + i * cut.piece) * dw_row_bytes) return false;
  }
  return true;
}

// As many columns in pieces of this many as there are behind one chunk, or as fit.
inline VocabularyCut cut_pieces(VocabularyCut cut, int64_t piece, int64_t column_bytes,
                                int64_t dw_row_bytes) {
  cut.piece = piece;
  for (int64_t n = (cut.columns - cut.chunk + piece - 1) / piece; n > 0; --n) {
    cut.in_scratch = std::max(cut.chunk, round_up(cut.columns - n * piece, kPadding));
    if (pieces_fit(cut, column_bytes, dw_row_bytes)) return cut;
  }
  cut.in_scratch = cut.columns;
  return cut;
}

// A cut with at most `bytes` of logits in the scratch and with the fewest columns that are computed
// twice, in the fewest pieces. dw_row_bytes is 0 where dw has no memory that may be used.
inline VocabularyCut cut_vocabulary(int64_t columns, int64_t column_bytes, int64_t bytes,
                                    int64_t dw_row_bytes) {
  const int64_t chunk = chunk_columns(columns, column_bytes, bytes);
  VocabularyCut best = {columns, chunk, columns, 0};
  if (dw_row_bytes == 0) return best;
  for (int64_t n = 1; n <= kMostPieces && best.in_scratch > chunk; ++n) {
    const int64_t piece = (columns - chunk + n - 1) / n;
    const int64_t whole = round_up(piece, piece < kColumnTile ? kPadding : kColumnTile);
    const VocabularyCut cut =
        cut_pieces({columns, chunk, columns, 0}, whole, column_bytes, dw_row_bytes);
    if (cut.in_scratch < best.in_scratch) best = cut;
  }
  return best;
}

}  // namespace tigon::linear_cross_entropy
