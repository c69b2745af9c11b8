// SPDX-License-Identifier: Apache-2.0
// linear_cross_entropy: what is cut, what is left out, and the scratch that follows from it.
#include "kernels/linear_head/vocabulary_cut.h"
#include "kernels/tests/linear_cross_entropy_call.h"

namespace tigon::linear_cross_entropy {
namespace {

using namespace linear_head;

template <class P>
class LinearCrossEntropyChunks : public LinearCrossEntropy<P> {};
TYPED_TEST_SUITE(LinearCrossEntropyChunks, Policies);

struct Bytes {
  int64_t first, end;
  bool meets(const Bytes& other) const { return first < other.end && other.first < end; }
};

// The chunks of a round from the right.
std::vector<Columns> chunks_of(const Round& round, const LogitsRoom& room) {
  std::vector<Columns> chunks;
  for (int64_t end = round.end; end > round.first; end = chunks.back().first) {
    chunks.push_back(chunk_before(end, round, room));
    if (chunks.back().count <= 0) break;
  }
  return chunks;
}

// Where a segment lies in the memory of dw.
Bytes segment_bytes(const Columns& c, const Round& round, const LogitsRoom& room) {
  const int64_t first = kSegmentAlignment + (c.first - round.in_dw) * room.column_bytes;
  return {first, first + round_up(c.count, kPadding) * room.column_bytes};
}

// Chunks follow each other without a gap from aligned columns, and none is over the budget. No
// segment overlaps another, or rows of dw that are written before its gradient has been taken.
void expect_right(const Round& round, const LogitsRoom& room) {
  EXPECT_LT(round.first, round.end);
  EXPECT_GE(round.first, 0);
  const std::vector<Columns> chunks = chunks_of(round, room);
  int64_t end = round.end;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const Columns& c = chunks[i];
    EXPECT_EQ(c.first + c.count, end);
    EXPECT_EQ(c.first % kPadding, 0);
    ASSERT_GT(c.count, 0);
    end = c.first;
    if (c.first < round.in_dw) {
      EXPECT_EQ(c.first, round.first);
      EXPECT_LE(c.count, room.scratch_columns);
      continue;
    }
    const Bytes here = segment_bytes(c, round, room);
    EXPECT_EQ(here.first % kSegmentAlignment, 0);
    for (size_t j = 0; j <= i; ++j) {  // itself and those on its right
      const Columns& other = chunks[j];
      const Bytes rows = {other.first * room.dw_row_bytes,
                          (other.first + other.count) * room.dw_row_bytes};
      EXPECT_FALSE(here.meets(rows)) << "column " << c.first << ", rows " << other.first;
      EXPECT_TRUE(i == j || !here.meets(segment_bytes(other, round, room)));
    }
  }
  EXPECT_EQ(end, round.first);
}

TEST(VocabularyCut, PiecesEndBeforeTheRowsThatAreWritten) {
  for (const int64_t columns : {1, 8, 33, 50, 255, 700, 2048, 50257, 128256}) {
    for (const int64_t most : {0, 1, 8, 100, 256, 3000, 50000, 200000}) {
      for (const int64_t column_bytes : {2, 26, 1008, 8192, 32768}) {
        for (const int64_t dw_row_bytes : {0, 2, 48, 1000, 8192, 65536}) {
          SCOPED_TRACE(testing::Message()
                       << "V " << columns << " budget of " << most << " columns of " << column_bytes
                       << " bytes, rows of dw " << dw_row_bytes);
          const LogitsRoom room = {column_bytes,
                                   scratch_columns(columns, column_bytes, most * column_bytes),
                                   dw_row_bytes};
          EXPECT_LE(room.scratch_columns, std::max(most, kPadding));
          int64_t end = columns;
          for (int i = 0; i < 20 && end > 0 && !testing::Test::HasFailure(); ++i) {
            const Round round = round_before(end, room);
            expect_right(round, room);
            end = round.first;
          }
        }
      }
    }
  }
}

// Columns that are computed twice, of bf16 and with this many MiB of logits in the scratch.
int64_t computed_twice(int64_t rows, int64_t hidden, int64_t columns, int64_t mebibytes) {
  const int64_t column_bytes = 2 * rows;
  const int64_t held = scratch_columns(columns, column_bytes, mebibytes << 20);
  return round_before(columns, {column_bytes, held, 2 * hidden}).first;
}

// With as many tokens as the hidden size the memory of dw has room for the logits.
TEST(VocabularyCut, FewColumnsAreComputedTwice) {
  EXPECT_EQ(computed_twice(4096, 4096, 128256, 280), 0);
  EXPECT_EQ(computed_twice(2048, 4096, 128256, 32), 0);
  EXPECT_EQ(computed_twice(8192, 2304, 256000, 2960), 0);
  EXPECT_LT(computed_twice(8192, 4096, 128256, 220), 56000);
  EXPECT_LT(computed_twice(16384, 4096, 128256, 88), 96000);
}

TYPED_TEST(LinearCrossEntropyChunks, MoreRowsThanPromisedAreReported) {
  for (const Reduction r : {Reduction::kMean, Reduction::kNone}) {
    for (const int64_t most : {0, 8}) {
      this->make({.options = {.reduction = r}, .max_valid_rows = most, .bias = true});
      const auto out = this->run_forward_backward();
      for (const auto* values : {&out.loss, &out.lse, &out.dbias})
        for (const float v : *values) EXPECT_TRUE(std::isnan(v));
      for (const auto v : out.dx) EXPECT_TRUE(std::isnan(static_cast<float>(v)));
      for (const auto v : out.dw) EXPECT_TRUE(std::isnan(static_cast<float>(v)));
    }
  }
}

// The products shrink with the bound.
TYPED_TEST(LinearCrossEntropyChunks, ScratchFollowsTheBoundOfRows) {
  using Elem = typename TypeParam::Elem;
  ForwardBackward<TypeParam> a;
  a.x = view(static_cast<const Elem*>(nullptr), 4096, 8);
  a.w = view(static_cast<const Elem*>(nullptr), 100000, 8);
  a.loss = view(static_cast<float*>(nullptr), 1);
  a.logits_bytes = int64_t{4} << 30;
  const auto all = workspace(a);
  a.max_valid_rows = 1024;
  EXPECT_LT(workspace(a), all / 2);
}

// The budget buys rows; the GEMM's workspace is small beside these.
TYPED_TEST(LinearCrossEntropyChunks, ScratchFollowsTheBudget) {
  using Elem = typename TypeParam::Elem;
  Elem some;  // nothing is read: only whether a gradient is given
  float some_fp32;
  ForwardBackward<TypeParam> a;
  a.x = view(static_cast<const Elem*>(nullptr), 4096, 64);
  a.w = view(static_cast<const Elem*>(nullptr), 500001, 64);
  a.loss = view(static_cast<float*>(nullptr), 1);
  a.reduction = Reduction::kSum;
  const int64_t row = 500008 * static_cast<int64_t>(sizeof(Elem));
  const auto bytes = [&](int64_t rows) {
    a.logits_bytes = rows * row + 1;
    return static_cast<int64_t>(workspace(a));
  };
  const int64_t one_row = bytes(0);
  EXPECT_EQ(one_row, bytes(1));
  // Six chunks of 683 rows: rounded up to whole tiles they would be over the budget of 700.
  EXPECT_LE(bytes(700) - one_row, 700 * row + (int64_t{64} << 20));
  EXPECT_GE(bytes(700) - one_row, 682 * row - (int64_t{64} << 20));
  EXPECT_LE(bytes(5000), 4096 * row + (int64_t{64} << 20));
  // A dw of fp32 needs no sum of its own.
  a.dw = view(&some, 500001, 64);
  const int64_t with_sum = bytes(700);
  a.dw = {};
  a.dw_accum = view(&some_fp32, 500001, 64);
  const int64_t sum = std::is_same_v<Elem, float> ? 0 : 500001 * 64 * 4;
  EXPECT_NEAR(with_sum - bytes(700), sum, 256);
  // Where the vocabulary is cut, 4096 rows of 1,024 columns and a sum of dx.
  a.dw_accum = {};
  a.dx = view(&some, 4096, 64);
  a.split = Split::kVocabulary;
  const int64_t column = 4096 * static_cast<int64_t>(sizeof(Elem));
  const auto of_columns = [&](int64_t columns) {
    a.logits_bytes = columns * column;
    return static_cast<int64_t>(workspace(a));
  };
  EXPECT_EQ(of_columns(1025), of_columns(1024));
  EXPECT_NEAR(of_columns(1024) - of_columns(8), 1016 * column, size_t{64} << 20);
}
}  // namespace
}  // namespace tigon::linear_cross_entropy
