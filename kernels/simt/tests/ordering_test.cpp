// SPDX-License-Identifier: Apache-2.0
// Which barriers order which accesses, in the checker's eyes. The writer is both the first and the
// last thread to run: the history of a word holds one reader, which must stand for all of them.
#include "kernels/simt/tests/ordering.h"

#include <gtest/gtest.h>

#include "kernels/device/tests/device_array.h"
#include "kernels/simt/simt.h"

namespace tigon::simt_tests {
namespace {

using simt::Schedule;

class OrderingTest : public testing::Test {
 protected:
  void SetUp() override { saved_ = simt::config(); }
  void TearDown() override {
    simt::config() = saved_;
    simt::reports_reset();
  }

  // With the writer first and last in the order of execution.
  static void expect(bool race, Ordering o) {
    simt::config().os_threads = 1;
    for (const Schedule schedule : {Schedule::kSequential, Schedule::kReverse}) {
      for (const unsigned writer : {0u, o.threads - 1}) {
        o.writer = writer;
        simt::config().schedule = schedule;
        simt::reports_reset();
        DeviceArray<int> word(std::vector<int>{0});
        DeviceArray<int> out(o.blocks * o.threads);
        const Status status = touch(o, word.data(), out.data());
        EXPECT_EQ(status.ok(), !race) << "writer " << writer << ", schedule "
                                      << static_cast<int>(schedule) << ": " << status.reason;
        for (const simt::Report& r : simt::reports())
          EXPECT_EQ(r.kind, simt::Kind::kRace) << r.message;
      }
    }
  }

 private:
  simt::Config saved_;
};

TEST_F(OrderingTest, ReadersOfTheWarp) {
  expect(true, {.threads = 32});
  expect(true, {.barrier = Barrier::kShuffle, .threads = 32});
  expect(false, {.barrier = Barrier::kSyncwarp, .threads = 32});
  expect(false, {.barrier = Barrier::kSyncthreads, .threads = 32});
}

TEST_F(OrderingTest, ReadersOfTheBlock) {
  expect(true, {.threads = 96});
  expect(true, {.barrier = Barrier::kSyncwarp, .threads = 96});
  expect(false, {.barrier = Barrier::kSyncthreads, .threads = 96});
}

TEST_F(OrderingTest, ReadersOfTheCluster) {
  for (const unsigned writer_block : {0u, 1u}) {
    Ordering o{.blocks = 2, .threads = 64, .cluster = 2, .writer_block = writer_block};
    expect(true, o);
    o.barrier = Barrier::kSyncthreads;
    expect(true, o);
    o.barrier = Barrier::kClusterSync;
    expect(false, o);
  }
}

TEST_F(OrderingTest, ReadersOfOtherClusters) {
  for (const unsigned writer_block : {0u, 3u}) {
    expect(true, {.barrier = Barrier::kSyncthreads, .blocks = 4, .writer_block = writer_block});
    expect(true, {.barrier = Barrier::kClusterSync,
                  .blocks = 4,
                  .cluster = 2,
                  .writer_block = writer_block});
  }
}

TEST_F(OrderingTest, Writers) {
  expect(false, {.first = First::kWrite, .threads = 32});  // by the same thread
  expect(true, {.first = First::kWrite, .barrier = Barrier::kSyncthreads, .blocks = 2});
  expect(true, {.first = First::kWrite,
                .barrier = Barrier::kSyncthreads,
                .blocks = 2,
                .cluster = 2,
                .writer_block = 1});
}

TEST_F(OrderingTest, Atomics) {
  expect(false, {.first = First::kAtomic, .then_atomic = true, .blocks = 3});
  expect(true, {.first = First::kAtomic});
  expect(true, {.then_atomic = true});
  expect(false, {.barrier = Barrier::kSyncthreads, .then_atomic = true});
  // An atomic of the writer does not order its write before those of others.
  expect(true, {.first = First::kWriteThenAtomics, .then_atomic = true, .threads = 32});
  expect(true, {.first = First::kWriteThenAtomics, .then_atomic = true, .blocks = 2});
  expect(false, {.first = First::kWriteThenAtomics, .then_atomic = true, .threads = 1});
}

// A launch sees everything that earlier ones did.
TEST_F(OrderingTest, Launches) {
  DeviceArray<int> word(std::vector<int>{0}), out(128);
  for (const First first : {First::kRead, First::kAtomic}) {
    ASSERT_TRUE(
        touch({.first = first, .blocks = 2, .writer_block = 9}, word.data(), out.data()).ok());
    ASSERT_TRUE(touch({.first = First::kNothing}, word.data(), out.data()).ok());
  }
}

}  // namespace
}  // namespace tigon::simt_tests
