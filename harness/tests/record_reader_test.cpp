// SPDX-License-Identifier: Apache-2.0
// A damaged line of a records file is told from one that never had a sum.
#include "harness/record/record_reader.h"

#include <gtest/gtest.h>

namespace tigon {
namespace {

TEST(RecordReader, NoticesAnyFlippedBit) {
  const std::string line = with_sum(R"({"record":"","passed":1})");
  ASSERT_TRUE(parse_record(line).has_value());
  for (size_t byte = 0; byte < line.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = line;
      damaged[byte] ^= static_cast<char>(1 << bit);
      EXPECT_FALSE(parse_record(damaged).has_value()) << damaged;
    }
}

TEST(RecordReader, TakesALineWithoutASum) {
  EXPECT_TRUE(parse_record(R"({"record":"check"})").has_value());
  EXPECT_TRUE(parse_record(R"({"record":"check","reason":"longer than a sum is"})").has_value());
}

}  // namespace
}  // namespace tigon
