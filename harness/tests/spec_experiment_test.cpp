// SPDX-License-Identifier: Apache-2.0
// What "the same bits" and "within the budgets" mean in a property.
#include "harness/spec/experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tigon {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

HostTensor of(std::vector<double> values) {
  const auto size = static_cast<int64_t>(values.size());
  return {DType::kF32, {size}, std::move(values)};
}

bool same(const HostTensor& a, const HostTensor& b) {
  try {
    expect_same("y", a, b, "now", "before");
  } catch (const Violation&) {
    return false;
  }
  return true;
}

bool close(const HostTensor& a, const HostTensor& b, std::vector<double> allowed) {
  try {
    expect_close("y", a, b, allowed, "now", "before");
  } catch (const Violation&) {
    return false;
  }
  return true;
}

TEST(Relation, the_same_means_the_same_bits) {
  EXPECT_TRUE(same(of({1, kNotANumber}), of({1, kNotANumber})));
  EXPECT_FALSE(same(of({1, 2}), of({1, std::nextafter(2.0f, 3.0f)})));
  EXPECT_FALSE(same(of({0.0}), of({-0.0})));
  EXPECT_FALSE(same(of({1}), of({kNotANumber})));
  EXPECT_FALSE(same(of({1}), of({1, 2})));
}

TEST(Relation, close_fails_closed) {
  EXPECT_TRUE(close(of({1, kNotANumber}), of({1.5, kNotANumber}), {0.5, 0}));
  EXPECT_FALSE(close(of({1}), of({1.5}), {0.25}));
  EXPECT_FALSE(close(of({kNotANumber}), of({1}), {1e30}));
  EXPECT_FALSE(close(of({1}), of({2}), {kNotANumber}));
  EXPECT_FALSE(close(of({1}), of({1, 2}), {1, 1}));
}

}  // namespace
}  // namespace tigon
