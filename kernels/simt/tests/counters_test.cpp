// SPDX-License-Identifier: Apache-2.0
// Traffic counters on kernels whose traffic can be worked out by hand.
#include <gtest/gtest.h>

#include "kernels/device/tests/device_array.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/tests/patterns.h"

namespace tigon::simt_tests {
namespace {

using simt::Counters;
using simt::Schedule;

class CountersTest : public testing::Test {
 protected:
  void SetUp() override {
    saved_ = simt::config();
    simt::counters_reset();
  }
  void TearDown() override { simt::config() = saved_; }

 private:
  simt::Config saved_;
};

// What one launch did.
Counters count(const Status& status) {
  EXPECT_TRUE(status.ok()) << status.reason;
  const std::map<std::string, Counters> all = simt::counters();
  EXPECT_EQ(all.size(), 1u);
  simt::counters_reset();
  return all.empty() ? Counters{} : all.begin()->second;
}

DeviceArray<float> ones(size_t n) { return DeviceArray<float>(std::vector<float>(n, 1.0f)); }

TEST_F(CountersTest, CoalescedWords) {
  const DeviceArray<float> x = ones(1024), y = ones(1024);
  const Counters c = count(copy_words(2, x.data(), y.data(), 1024));
  EXPECT_EQ(c.launches, 1u);
  EXPECT_EQ(c.global_load_bytes, 4096u);
  EXPECT_EQ(c.global_store_bytes, 4096u);
  EXPECT_EQ(c.global_load_requests, 32u);
  EXPECT_EQ(c.global_load_sectors, 128u);
  EXPECT_EQ(c.global_store_sectors, 128u);
  EXPECT_EQ(c.shared_requests, 0u);
  EXPECT_EQ(c.barriers, 0u);
  EXPECT_EQ(c.atomics, 0u);
}

TEST_F(CountersTest, ByLine) {
  const DeviceArray<float> x = ones(1024), y = ones(1024);
  ASSERT_TRUE(copy_words(2, x.data(), y.data(), 1024).ok());
  const auto lines = simt::line_counters();
  uint64_t loaded = 0, stored = 0;
  for (const simt::LineCounters& l : lines) {
    EXPECT_GT(l.line, 0u);
    loaded += l.counters.global_load_bytes;
    stored += l.counters.global_store_bytes;
  }
  EXPECT_EQ(loaded, 4096u);
  EXPECT_EQ(stored, 4096u);
  simt::counters_reset();
  EXPECT_TRUE(simt::line_counters().empty());
}

TEST_F(CountersTest, WritersAreKnown) {
  const DeviceArray<float> x = ones(200), y = ones(200);
  ASSERT_TRUE(copy_words(2, x.data(), y.data(), 200).ok());
  const auto writers = simt::writers({y.data() + 3, y.data() + 64 + 5});
  ASSERT_TRUE(writers[0].known && writers[1].known);
  EXPECT_EQ(writers[0].block, 0u);
  EXPECT_EQ(writers[0].thread, 3u);
  EXPECT_EQ(writers[1].block, 1u);
  EXPECT_EQ(writers[1].thread, 5u);
  EXPECT_GT(writers[0].line, 0u);
}

TEST_F(CountersTest, CoalescedVectors) {
  const DeviceArray<float> x = ones(1024), y = ones(1024);
  const Counters c = count(copy_vectors(2, x.data(), y.data(), 1024));
  EXPECT_EQ(c.global_load_bytes, 4096u);
  EXPECT_EQ(c.global_load_requests, 8u);
  EXPECT_EQ(c.global_store_requests, 8u);
  EXPECT_EQ(c.global_load_sectors, 128u);
}

TEST_F(CountersTest, DoNotDependOnHowTheExecutorRuns) {
  const DeviceArray<float> x = ones(1000), y = ones(1000);
  for (const unsigned threads : {1u, 2u}) {
    for (const Schedule schedule :
         {Schedule::kSequential, Schedule::kUniform, Schedule::kReverse}) {
      simt::config().os_threads = threads;
      simt::config().schedule = schedule;
      const Counters c = count(copy_words(3, x.data(), y.data(), 1000));
      EXPECT_EQ(c.global_load_bytes, 4000u);
      EXPECT_EQ(c.global_load_requests, 32u);
      EXPECT_EQ(c.global_load_sectors, 125u);
    }
  }
}

TEST_F(CountersTest, TailsAndOffsets) {
  const DeviceArray<float> x = ones(200), y = ones(200);
  const Counters tail = count(copy_words(1, x.data(), y.data(), 37));
  EXPECT_EQ(tail.global_load_bytes, 37 * 4u);
  EXPECT_EQ(tail.global_load_requests, 2u);
  EXPECT_EQ(tail.global_load_sectors, 5u);
  // 128 bytes from an address that is no multiple of 32 touch one sector more.
  const Counters offset = count(copy_words(1, x.data() + 1, y.data(), 64));
  EXPECT_EQ(offset.global_load_sectors, 10u);
  EXPECT_EQ(offset.global_store_sectors, 8u);
}

TEST_F(CountersTest, StridesAndBroadcasts) {
  const DeviceArray<float> x = ones(64 * 8), y = ones(64);
  const Counters strided = count(gather(1, 8, x.data(), y.data()));
  EXPECT_EQ(strided.global_load_bytes, 256u);
  EXPECT_EQ(strided.global_load_sectors, 64u);
  const Counters every_second = count(gather(1, 2, x.data(), y.data()));
  EXPECT_EQ(every_second.global_load_sectors, 16u);
  const Counters broadcast = count(gather(1, 0, x.data(), y.data()));
  EXPECT_EQ(broadcast.global_load_bytes, 8u);  // one word per warp
  EXPECT_EQ(broadcast.global_load_sectors, 2u);
}

TEST_F(CountersTest, LanesThatLoopLessOften) {
  const DeviceArray<float> x = ones(64), y = ones(64);
  const Counters c = count(triangle(x.data(), y.data()));
  // The longest lane decides; the k-th iteration of all lanes loads one word.
  EXPECT_EQ(c.global_load_requests, 31u + 63u);
  EXPECT_EQ(c.global_load_bytes, (31u + 63u) * 4);
}

// Of the store and of the load.
TEST_F(CountersTest, BankConflictsOfWords) {
  const DeviceArray<float> y = ones(64);
  const std::pair<int, unsigned> expected[] = {{1, 0}, {2, 1}, {4, 3}, {32, 31}, {33, 0}};
  for (const auto& [stride, conflicts] : expected) {
    const Counters c = count(shared_words(4, stride, y.data()));
    EXPECT_EQ(c.shared_requests, 2u);
    EXPECT_EQ(c.shared_conflicts, 2 * conflicts) << "stride " << stride;
  }
}

TEST_F(CountersTest, OneWordForAllIsNoConflict) {
  const DeviceArray<float> y = ones(64);
  const Counters c = count(shared_broadcast(y.data()));
  EXPECT_EQ(c.shared_requests, 3u);
  EXPECT_EQ(c.shared_conflicts, 0u);
}

TEST_F(CountersTest, BankConflictsOfWideAccesses) {
  const DeviceArray<float> y = ones(64);
  const auto conflicts = [&](int bytes, int stride) {
    return count(shared_words(bytes, stride, y.data())).shared_conflicts;
  };
  EXPECT_EQ(conflicts(8, 2), 0u);      // half-warps of 16 lanes fill the 32 banks
  EXPECT_EQ(conflicts(8, 4), 2u * 2);  // each half-warp in two wavefronts
  EXPECT_EQ(conflicts(8, 32), 2u * 30);
  EXPECT_EQ(conflicts(16, 4), 0u);  // quarter-warps of 8 lanes
  EXPECT_EQ(conflicts(16, 8), 4u);  // each quarter-warp in two
  EXPECT_EQ(conflicts(16, 32), 28u);
}

TEST_F(CountersTest, BarriersAndAtomics) {
  const DeviceArray<int> sum(std::vector<int>{0});
  const Counters c = count(barriers_and_atomics(3, 5, sum.data()));
  EXPECT_EQ(c.barriers, 15u);
  EXPECT_EQ(c.atomics, 192u);
  EXPECT_EQ(c.global_load_bytes, 0u);
}

TEST_F(CountersTest, AddUpByKernel) {
  const DeviceArray<float> x = ones(64), y = ones(64);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(copy_words(1, x.data(), y.data(), 64).ok());
  ASSERT_TRUE(copy_vectors(1, x.data(), y.data(), 64).ok());
  const std::map<std::string, Counters> all = simt::counters();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.at("simt_tests::copy_words_kernel").launches, 3u);
  EXPECT_EQ(all.at("simt_tests::copy_words_kernel").global_load_bytes, 3 * 256u);
  EXPECT_EQ(all.at("simt_tests::copy_vectors_kernel").launches, 1u);
}

TEST_F(CountersTest, CanBeSwitchedOff) {
  simt::config().count = false;
  const DeviceArray<float> x = ones(64), y = ones(64);
  EXPECT_EQ(count(copy_words(1, x.data(), y.data(), 64)).global_load_bytes, 0u);
}

}  // namespace
}  // namespace tigon::simt_tests
