// SPDX-License-Identifier: Apache-2.0
// Doubles to stored elements and back.
#include "harness/run/memory/convert.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tigon {
namespace {

TEST(Convert, narrow_and_widen_round_once) {
  for (DType t : {DType::kF64, DType::kF32, DType::kBF16, DType::kF16}) {
    const std::vector<double> values = {0, 1, -1.0 / 3, 1e-3, 300};
    const auto bytes = narrow(values, t);
    ASSERT_EQ(bytes.size(), values.size() * size_of(t));
    const auto back = widen(bytes.data(), values.size(), t);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_LE(std::abs(back[i] - values[i]), unit_roundoff(t) * std::abs(values[i]));
    EXPECT_EQ(narrow(back, t), bytes);
  }
  const std::vector<double> integers = {0, -100, 262143};
  for (DType t : {DType::kI64, DType::kI32})
    EXPECT_EQ(widen(narrow(integers, t).data(), 3, t), integers);
}

TEST(Convert, widen_reads_all_bytes_of_an_element) {
  for (DType t : {DType::kF64, DType::kF32, DType::kBF16, DType::kF16}) {
    const double next_to_one = 1 + 2 * unit_roundoff(t);
    const auto bytes = narrow({1, next_to_one, -next_to_one}, t);
    EXPECT_EQ(widen(bytes.data(), 3, t), (std::vector<double>{1, next_to_one, -next_to_one}))
        << name_of(t);
  }
}

}  // namespace
}  // namespace tigon
