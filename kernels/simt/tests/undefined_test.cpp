// SPDX-License-Identifier: Apache-2.0
// What C++ leaves undefined in a kernel is found, where a GPU and a host may differ.
#include <gtest/gtest.h>

#include <string>

#include "kernels/device/tests/device_array.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/tests/saved_settings.h"
#include "kernels/simt/tests/undefined.h"

namespace tigon::simt_tests {
namespace {

class Undefined : public testing::Test {
 protected:
  static void SetUpTestSuite() { simt::watch_prefetches(); }
  // One finding of all threads, at a line of undefined.cu.
  static void expect_finding(const Status& status, simt::Kind kind, const std::string& what) {
    ASSERT_EQ(simt::reports().size(), 1u);
    const simt::Report found = simt::reports()[0];
    EXPECT_EQ(found.kind, kind);
    EXPECT_EQ(found.count, 32u);
    EXPECT_EQ(found.at.file, "kernels/simt/tests/undefined.cu");
    EXPECT_NE(std::string(status.reason).find(what), std::string::npos) << status.reason;
    simt::reports_reset();
  }
  DeviceArray<int> x_{32};

 private:
  SavedSettings settings_;
};

TEST_F(Undefined, what_is_defined_is_no_finding) {
  EXPECT_TRUE(fill(x_.data(), kOwnValues).ok());
  EXPECT_EQ(x_.get()[17], 17);
  EXPECT_TRUE(fill_members(x_.data(), kOwnValues).ok());
  EXPECT_EQ(x_.get()[18], 18);
  EXPECT_TRUE(shift(x_.data(), 31).ok());
  EXPECT_TRUE(simt::reports().empty());
}

TEST_F(Undefined, an_index_behind_a_threads_own_array_is_found) {
  for (const auto& run : {fill, fill_members})
    expect_finding(run(x_.data(), kOwnValues + 1), simt::Kind::kOutOfBounds,
                   "out of bounds: index 4 of 'int [4]'");
}

TEST_F(Undefined, a_shift_by_more_bits_than_there_are_is_found) {
  for (const int by : {32, -1})
    expect_finding(shift(x_.data(), by), simt::Kind::kUndefined,
                   "undefined operation: a shift by " + std::to_string(by) + " bits");
}

TEST_F(Undefined, a_prefetch_of_what_was_not_allocated_is_found) {
  EXPECT_TRUE(prefetch(x_.data(), 28).ok());
  for (const int first : {-64, 32})
    expect_finding(prefetch(x_.data(), first), simt::Kind::kOutOfBounds, "bulk prefetch of what");
}

}  // namespace
}  // namespace tigon::simt_tests
