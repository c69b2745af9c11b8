// SPDX-License-Identifier: Apache-2.0
// The executor, accesses checked or not: results do not depend on how it runs kernels, and what it
// notices without the checker ends a launch with an explanation.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "kernels/device/tests/device_array.h"
#include "kernels/device/tests/primitives.h"
#include "kernels/simt/kernel_api.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/tests/faults.h"
#include "kernels/simt/tests/saved_settings.h"

namespace tigon::simt_tests {
namespace {

using simt::Kind;
using simt::Schedule;

class Executor : public testing::Test {
 private:
  SavedSettings settings_;
};

std::vector<float> values(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = std::sin(static_cast<float>(i) * 1.7f);
  return v;
}

// Outputs of reductions, shuffles, clusters, atomics and copies, in one list.
std::vector<float> everything() {
  using namespace device_tests;
  std::vector<float> all;
  const auto keep = [&](const Status& status, const auto& from) {
    EXPECT_TRUE(status.ok()) << status.reason;
    for (const auto& v : from.get()) all.push_back(static_cast<float>(v));
  };
  for (const int threads : {32, 96, 256, 1024}) {
    const auto n = static_cast<size_t>(threads);
    DeviceArray<float> x(values(3 * n)), sums(n), maxima(n);
    keep(block_reductions(threads, x.data(), 3, sums.data(), maxima.data()), sums);
    keep({}, maxima);
  }
  DeviceArray<float> x(values(4 * 2 * kTile)), maximum(1), sum(1), rows(4);
  keep(online_softmax(x.data(), 1000, maximum.data(), sum.data()), sum);
  keep(async_row_sums(x.data(), 4, 2, rows.data()), rows);
  keep(bulk_row_sums(x.data(), 4, 2, rows.data()), rows);
  DeviceArray<int> clusters(8), in(std::vector<int>(150, 3)), out(150 * kWarpOps);
  keep(cluster_sums(8, 4, clusters.data()), clusters);
  keep(warp_ops(in.data(), out.data(), 150), out);
  DeviceArray<unsigned> words(std::vector<unsigned>(8, 0));
  DeviceArray<float> total(std::vector<float>{0.0f});
  keep(atomics(5, words.data(), total.data()), words);
  keep({}, total);
  return all;
}

// Those of other threads run.
TEST_F(Executor, LaunchesOfAThreadCanBeNotedAlone) {
  const auto sum_of_clusters = [] {
    DeviceArray<int> clusters(std::vector<int>(8, -1));
    EXPECT_TRUE(device_tests::cluster_sums(8, 4, clusters.data()).ok());
    return clusters.get().front();
  };
  simt::take_launched();
  simt::set_runs(false);
  const int noted = sum_of_clusters();
  int elsewhere = 0;
  std::thread([&] { elsewhere = sum_of_clusters(); }).join();
  simt::set_runs(true);
  EXPECT_EQ(noted, -1);
  EXPECT_NE(elsewhere, -1);
  EXPECT_EQ(sum_of_clusters(), elsewhere);
  EXPECT_EQ(simt::take_launched().size(), 1u);
}

TEST_F(Executor, ResultsDoNotDependOnHowItRuns) {
  simt::config().os_threads = 1;
  const std::vector<float> want = everything();
  for (const unsigned threads : {1u, 2u, 3u}) {
    for (const bool fused : {false, true}) {
      for (const Schedule schedule :
           {Schedule::kSequential, Schedule::kUniform, Schedule::kAhead, Schedule::kReverse}) {
        for (const uint64_t seed : {1u, 2u}) {
          simt::config().os_threads = threads;
          simt::config().fused = fused;
          simt::config().schedule = schedule;
          simt::config().seed = seed;
          EXPECT_EQ(everything(), want) << threads << " threads, fused " << fused << ", schedule "
                                        << static_cast<int>(schedule) << ", seed " << seed;
          if (schedule == Schedule::kSequential || schedule == Schedule::kReverse) break;
        }
      }
    }
  }
  EXPECT_TRUE(simt::reports().empty());
}

// A data loader's process: the pool's threads are not in it.
TEST_F(Executor, RunsInAForkedProcess) {
  simt::config().os_threads = 3;
  const std::vector<float> want = everything();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that waits for threads would wait for ever
    _exit(everything() == want ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(everything(), want);
}

TEST_F(Executor, StackSizeCanChange) {
  const std::vector<float> want = everything();
  simt::config().stack = 64 * 1024;
  EXPECT_EQ(everything(), want);
}

TEST_F(Executor, RefusesWhatAGpuBeforeSm90HasNot) {
  simt::config().sm_90 = false;
  DeviceArray<int> clusters(8);
  EXPECT_TRUE(device_tests::cluster_sums(8, 1, clusters.data()).ok());
  const auto reason = [](const Status& status) { return std::string(status.reason); };
  EXPECT_NE(reason(device_tests::cluster_sums(8, 4, clusters.data())).find("no clusters"),
            std::string::npos);
  EXPECT_NE(reason(simt::run_grid({.dynamic_bytes = 164 * 1024}, {})).find("163 KB"),
            std::string::npos);
  DeviceArray<float> x(values(4 * 2 * 1024)), rows(4);
  const Status copied = device_tests::bulk_row_sums(x.data(), 4, 2, rows.data());
  EXPECT_NE(reason(copied).find("bulk copy: a GPU before sm_90 has none"), std::string::npos)
      << copied.reason;
}

// Runs a kernel that must end with exactly this kind of finding, at a known line.
void expect_finding(const Status& status, Kind kind) {
  EXPECT_EQ(status.code, Status::kLaunchFailed);
  const std::vector<simt::Report> reports = simt::reports();
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports[0].kind, kind) << reports[0].message;
  EXPECT_NE(std::string(status.reason).find(simt::name_of(kind)), std::string::npos)
      << status.reason;
  EXPECT_EQ(reports[0].at.file, "kernels/simt/tests/faults.cu") << reports[0].message;
  EXPECT_GT(reports[0].at.line, 0u);
  EXPECT_EQ(reports[0].kernel.rfind("simt_tests::", 0), 0u) << reports[0].kernel;
  simt::reports_reset();
}

TEST_F(Executor, FindsFaultsWithoutTheChecker) {
  DeviceArray<float> x(values(5 * 256)), sums(5);
  expect_finding(block_sums(Fault::kHalfWarpMask, x.data(), sums.data(), 5),
                 Kind::kDivergentCollective);
  expect_finding(block_sums(Fault::kShuffleInBranch, x.data(), sums.data(), 5),
                 Kind::kDivergentCollective);
  expect_finding(other(Fault::kTwoBarriers, x.data()), Kind::kDivergentBarrier);
  expect_finding(other(Fault::kDeadlock, x.data()), Kind::kDeadlock);
  expect_finding(other(Fault::kCopyLeftInFlight, x.data()), Kind::kAsyncCopy);
  expect_finding(other(Fault::kBulkCopyMisaligned, x.data()), Kind::kMisaligned);
  DeviceArray<bf16> in(std::vector<bf16>(2 * 333, bf16(1.0f))), w(std::vector<bf16>(333)),
      y(2 * 333);
  expect_finding(
      rms_norm(Fault::kRowsNotAligned, in.data(), w.data(), y.data(), sums.data(), 2, 333),
      Kind::kMisaligned);
  DeviceArray<float> tiles(values(3 * 1024));
  expect_finding(pipeline(Fault::kWrongByteCount, tiles.data(), sums.data(), 1, 3),
                 Kind::kAsyncCopy);
}

#ifndef TIGON_SANITIZED  // a sanitizer ends the process
TEST_F(Executor, FaultsOfKernelsDoNotEndTheProcess) {
  DeviceArray<float> x(values(64));
  expect_finding(other(Fault::kNullPointer, x.data()),
                 simt::checked() ? Kind::kOutOfBounds : Kind::kFault);
  expect_finding(other(Fault::kStackOverflow, x.data()), Kind::kFault);
  EXPECT_TRUE(other(Fault::kNone, x.data()).ok());
}
#endif

TEST_F(Executor, ToleratesWhatHardwareToleratesUnlessStrict) {
  DeviceArray<float> x(values(64));
  for (const Schedule schedule : {Schedule::kSequential, Schedule::kReverse}) {
    simt::config().schedule = schedule;
    simt::config().strict = true;
    expect_finding(other(Fault::kReturnBeforeBarrier, x.data()), Kind::kDivergentBarrier);
    EXPECT_FALSE(other(Fault::kTwoBarriers, x.data()).ok());
    simt::config().strict = false;
    simt::reports_reset();
    for (const Fault fault : {Fault::kReturnBeforeBarrier, Fault::kTwoBarriers}) {
      const Status status = other(fault, x.data());
      EXPECT_TRUE(status.ok()) << status.reason;
    }
    EXPECT_EQ(x.get()[31], 2.0f);
  }
}

TEST_F(Executor, PoisonsFreshMemory) {
  DeviceArray<float> x(16);
  for (const float v : x.get()) EXPECT_TRUE(std::isnan(v));
  if (simt::checked()) return;
  DeviceArray<float> in(values(256)), sums(1);
  ASSERT_TRUE(block_sums(Fault::kPartialsNotWritten, in.data(), sums.data(), 1).ok());
  EXPECT_TRUE(std::isnan(sums.get()[0]));
}

TEST_F(Executor, RefusesWhatCudaRefuses) {
  using device_tests::cluster_sums;
  using device_tests::indices;
  DeviceArray<unsigned> out(1);
  EXPECT_STREQ(indices(1, 1, 1, 1025, 1, 1, out.data()).reason,
               "a block must have 1 to 1024 threads");
  EXPECT_EQ(indices(1, 70000, 1, 1, 1, 1, out.data()).code, Status::kInvalidArgument);
  DeviceArray<int> sums(64);
  EXPECT_EQ(cluster_sums(6, 4, sums.data()).code, Status::kInvalidArgument);
  EXPECT_EQ(cluster_sums(64, 32, sums.data()).code, Status::kInvalidArgument);
}

TEST_F(Executor, CountsRepeatedFindings) {
  DeviceArray<float> x(values(64));
  EXPECT_FALSE(other(Fault::kTwoBarriers, x.data()).ok());
  const size_t count = simt::reports().at(0).count;
  EXPECT_FALSE(other(Fault::kTwoBarriers, x.data()).ok());
  EXPECT_EQ(simt::reports().size(), 1u);
  EXPECT_EQ(simt::reports().at(0).count, 2 * count);
}

// With a fault that no other test plants: lines are remembered.
TEST_F(Executor, SaysSomethingUsefulWithoutAddr2line) {
  const std::string path = getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  DeviceArray<float> x(values(64));
  const Status status = other(Fault::kTrap, x.data());
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(status.ok());
  const std::string reason = status.reason;
  EXPECT_NE(reason.find("trap: __trap(), block 0 thread 0 at "), std::string::npos) << reason;
  EXPECT_NE(reason.find("_test+0x"), std::string::npos) << reason;
  EXPECT_NE(reason.find("[simt_tests::other_kernel<"), std::string::npos) << reason;
}

}  // namespace
}  // namespace tigon::simt_tests
