// SPDX-License-Identifier: Apache-2.0
// A dependent launch uses memory of the kernel before it only after dependency_wait().
#include <gtest/gtest.h>

#include "kernels/device/tests/device_array.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/tests/dependent.h"

namespace tigon::simt_tests {
namespace {

struct Memory {
  DeviceArray<int> read{std::vector<int>(kDependentWords, 1)},
      written{std::vector<int>(kDependentWords)}, out{std::vector<int>(kDependentWords)};
  Status first() { return first_kernel_of_two(read.data(), written.data()); }
  Status second(const Dependent& d) {
    return second_kernel_of_two(d, read.data(), written.data(), out.data());
  }
};

class DependentTest : public testing::Test {
 protected:
  void SetUp() override { simt::reports_reset(); }
  void TearDown() override { simt::reports_reset(); }
  // Whether the latest launch had one finding, of this kind.
  static testing::AssertionResult is_found(const Status& status, size_t count = 1) {
    if (status.ok()) return testing::AssertionFailure() << "nothing was found";
    const auto reports = simt::reports();
    if (reports.size() == 1 && reports[0].kind == simt::Kind::kDependency &&
        reports[0].count == count)
      return testing::AssertionSuccess();
    return testing::AssertionFailure() << reports[0].count << " times " << status.reason;
  }
};

TEST_F(DependentTest, WhatTheFirstWritesIsAwaited) {
  Memory m;
  for (const Touch touch : {Touch::kReadWritten, Touch::kWriteWritten, Touch::kWriteRead})
    for (const Wait wait : {Wait::kAll, Wait::kTooLate, Wait::kFirstThread, Wait::kThenSyncwarp,
                            Wait::kThenSyncthreads, Wait::kThenClusterSync}) {
      SCOPED_TRACE(testing::Message()
                   << "touch " << static_cast<int>(touch) << ", wait " << static_cast<int>(wait));
      simt::reports_reset();
      ASSERT_TRUE(m.first().ok());
      const Status status = m.second({wait, touch});
      if (wait == Wait::kTooLate || wait == Wait::kFirstThread)
        EXPECT_TRUE(
            is_found(status, wait == Wait::kTooLate ? kDependentWords : kDependentWords - 1));
      else
        EXPECT_TRUE(status.ok()) << status.reason;
    }
}

TEST_F(DependentTest, WhatBothReadNeedsNoWait) {
  Memory m;
  ASSERT_TRUE(m.first().ok());
  const Status status = m.second({Wait::kTooLate, Touch::kReadRead});
  EXPECT_TRUE(status.ok()) << status.reason;
}

TEST_F(DependentTest, SomebodyWaits) {
  Memory m;
  ASSERT_TRUE(m.first().ok());
  EXPECT_TRUE(is_found(m.second({Wait::kNobody, Touch::kReadRead})));
}

TEST_F(DependentTest, OtherLaunchesAndCopiesAreInOrder) {
  Memory m;
  ASSERT_TRUE(m.first().ok());
  EXPECT_TRUE(m.second({Wait::kNobody, Touch::kReadWritten, false}).ok());
  ASSERT_TRUE(m.first().ok());
  m.out.set(std::vector<int>(kDependentWords));
  const Status status = m.second({Wait::kNobody, Touch::kReadWritten});
  EXPECT_TRUE(status.ok()) << status.reason;
}

// The second need not have ended when the third starts, and neither has the first.
TEST_F(DependentTest, IsOpenToTheThird) {
  Memory m, other;
  ASSERT_TRUE(m.first().ok());
  ASSERT_TRUE(other.second({Wait::kAll, Touch::kReadRead}).ok());
  EXPECT_FALSE(m.second({Wait::kTooLate, Touch::kReadWritten}).ok());
  EXPECT_EQ(simt::reports()[0].kind, simt::Kind::kDependency);
}

}  // namespace
}  // namespace tigon::simt_tests
