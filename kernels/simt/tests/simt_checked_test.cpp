// SPDX-License-Identifier: Apache-2.0
// The checker finds every planted fault, names its line, and says nothing about right kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <random>
#include <set>

#include "kernels/device/tests/device_array.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/tests/faults.h"
#include "kernels/simt/tests/saved_settings.h"

namespace tigon::simt_tests {
namespace {

using simt::Kind;
using simt::Report;

template <class T>
std::vector<T> normal(size_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> d;
  std::vector<T> v(n);
  for (T& x : v) x = T(d(random));
  return v;
}

// Runs one kind of kernel on a shape that forces reuse and tails; `result` gets an output.
using Run = std::function<Status(Fault, std::vector<double>* result)>;

template <class T>
void take(const DeviceArray<T>& from, std::vector<double>* to) {
  if (to == nullptr) return;
  for (const T& v : from.get()) to->push_back(static_cast<double>(v));
}

Status run_block_sums(Fault fault, std::vector<double>* result) {
  DeviceArray<float> x(normal<float>(5 * 256)), sums(5);
  const Status status = block_sums(fault, x.data(), sums.data(), 5);
  take(sums, result);
  return status;
}

// Rows of 264 elements are aligned, rows of 333 are not.
Run rms_norm_of(int h) {
  return [h](Fault fault, std::vector<double>* result) {
    const auto n = static_cast<size_t>(h);
    DeviceArray<bf16> x(normal<bf16>(4 * n)), w(normal<bf16>(n)), y(4 * n);
    DeviceArray<float> rstd(4);
    const Status status = rms_norm(fault, x.data(), w.data(), y.data(), rstd.data(), 4, h);
    take(y, result);
    return status;
  };
}

Status run_column_sums(Fault fault, std::vector<double>* result) {
  DeviceArray<float> x(normal<float>(9 * 100)), partial(4 * 100), sums(100);
  device_fill(partial.data(), 0, 4 * 100 * sizeof(float));
  const Status status = column_sums(fault, x.data(), partial.data(), sums.data(), 9, 100);
  take(sums, result);
  return status;
}

Run cross_entropy_of(int vocab, unsigned cluster) {
  return [=](Fault fault, std::vector<double>* result) {
    const auto n = static_cast<size_t>(vocab);
    DeviceArray<bf16> logits(normal<bf16>(3 * n));
    DeviceArray<int> target(std::vector<int>{vocab - 1, 0, vocab / 2});
    DeviceArray<float> loss(3);
    const Status status =
        cross_entropy(fault, logits.data(), target.data(), loss.data(), 3, vocab, cluster);
    take(loss, result);
    take(logits, result);
    return status;
  };
}

Status run_swiglu(Fault fault, std::vector<double>* result) {
  DeviceArray<bf16> a(normal<bf16>(333)), b(normal<bf16>(333)), y(333);
  const Status status = swiglu(fault, a.data(), b.data(), y.data(), 333);
  take(y, result);
  return status;
}

Status run_swiglu_backward(Fault fault, std::vector<double>* result) {
  DeviceArray<bf16> dy(normal<bf16>(333)), a(normal<bf16>(333)), b(normal<bf16>(333));
  const Status status = swiglu_backward(fault, dy.data(), a.data(), b.data(), 333);
  take(a, result);
  take(b, result);
  return status;
}

Status run_rotate(Fault fault, std::vector<double>* result) {
  std::vector<int> values(64);
  for (int i = 0; i < 64; ++i) values[static_cast<size_t>(i)] = i;
  DeviceArray<int> in(values), out(64);
  const Status status = rotate(fault, in.data(), out.data());
  take(out, result);
  return status;
}

Status run_pipeline(Fault fault, std::vector<double>* result) {
  DeviceArray<float> x(normal<float>(2 * 7 * 1024)), sums(2);
  const Status status = pipeline(fault, x.data(), sums.data(), 2, 7);
  take(sums, result);
  return status;
}

Status run_other(Fault fault, std::vector<double>* result) {
  DeviceArray<float> x(normal<float>(64));
  const Status status = other(fault, x.data());
  take(x, result);
  return status;
}

struct Planted {
  const char* name;  // of the fault, as in the comments of faults.cu
  Fault fault;
  Kind kind;
  Run run;
  bool in_reverse = true;  // also found when the last thread runs first
};

void PrintTo(const Planted& p, std::ostream* out) { *out << p.name; }

// Lines of faults.cu that say "finds: <name>".
std::set<unsigned> lines_that_find(const std::string& name) {
  std::ifstream in(TIGON_SOURCE_DIR "/kernels/simt/tests/faults.cu");
  std::set<unsigned> lines;
  unsigned number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const size_t at = line.find("finds: ");
    if (at == std::string::npos) continue;
    const std::string names = line.substr(at + 6) + ",";
    if (names.find(" " + name + ",") != std::string::npos) lines.insert(number);
  }
  return lines;
}

bool names(const Report& r, Kind kind, const std::set<unsigned>& lines) {
  const auto in = [&](const simt::Site& s) {
    return s.file == "kernels/simt/tests/faults.cu" && lines.count(s.line) != 0;
  };
  return r.kind == kind && (in(r.at) || (r.has_earlier && in(r.earlier)));
}

std::string all_messages() {
  std::string text;
  for (const Report& r : simt::reports()) text += r.message + "\n";
  return text.empty() ? "no findings" : text;
}

class PlantedFault : public testing::TestWithParam<Planted> {
 private:
  SavedSettings settings_;
};

TEST_P(PlantedFault, IsFoundAtItsLine) {
  const Planted& p = GetParam();
  const std::set<unsigned> lines = lines_that_find(p.name);
  ASSERT_FALSE(lines.empty());
  for (const simt::Schedule schedule : {simt::Schedule::kSequential, simt::Schedule::kReverse}) {
    if (schedule == simt::Schedule::kReverse && !p.in_reverse) continue;
    simt::config().schedule = schedule;
    simt::reports_reset();
    const Status status = p.run(p.fault, nullptr);
    EXPECT_EQ(status.code, Status::kLaunchFailed);
    bool found = false;
    for (const Report& r : simt::reports()) found |= names(r, p.kind, lines);
    EXPECT_TRUE(found) << "schedule " << static_cast<int>(schedule) << "\n" << all_messages();
  }
}

TEST_P(PlantedFault, IsAllThatIsWrong) {
  const Planted& p = GetParam();
  for (const simt::Schedule schedule : {simt::Schedule::kSequential, simt::Schedule::kUniform,
                                        simt::Schedule::kAhead, simt::Schedule::kReverse}) {
    simt::config().schedule = schedule;
    const Status status = p.run(Fault::kNone, nullptr);
    EXPECT_TRUE(status.ok()) << status.reason;
    EXPECT_TRUE(simt::reports().empty()) << all_messages();
  }
}

const Planted kPlanted[] = {
    {"kNoBarrierBeforeReuse", Fault::kNoBarrierBeforeReuse, Kind::kRace, run_block_sums},
    {"kNoBarrierAfterPartial", Fault::kNoBarrierAfterPartial, Kind::kUninitialized, run_block_sums},
    {"kShuffleInBranch", Fault::kShuffleInBranch, Kind::kDivergentCollective, run_block_sums},
    {"kPartialsNotWritten", Fault::kPartialsNotWritten, Kind::kUninitialized, run_block_sums},
    {"kHalfWarpMask", Fault::kHalfWarpMask, Kind::kDivergentCollective, run_block_sums},
    {"kSharedTooShort", Fault::kSharedTooShort, Kind::kOutOfBounds, run_block_sums},
    {"kRowsNotAligned", Fault::kRowsNotAligned, Kind::kMisaligned, rms_norm_of(333)},
    {"kVectorsRoundedUp", Fault::kVectorsRoundedUp, Kind::kOutOfBounds, rms_norm_of(260)},
    {"kEarlyReturn", Fault::kEarlyReturn, Kind::kDivergentCollective, rms_norm_of(264)},
    {"kSamePartialRow", Fault::kSamePartialRow, Kind::kRace, run_column_sums},
    {"kBaseNotAligned", Fault::kBaseNotAligned, Kind::kMisaligned, cross_entropy_of(1003, 1)},
    {"kClusterStart", Fault::kClusterStart, Kind::kClusterStart, cross_entropy_of(1003, 2)},
    {"kClusterExit", Fault::kClusterExit, Kind::kClusterExit, cross_entropy_of(1003, 2)},
    {"kLabelOverwritten", Fault::kLabelOverwritten, Kind::kRace, cross_entropy_of(1000, 1)},
    {"kNoClusterBarrier", Fault::kNoClusterBarrier, Kind::kRace, cross_entropy_of(1003, 4)},
    {"kTailOneMore", Fault::kTailOneMore, Kind::kOutOfBounds, run_swiglu},
    {"kNoSyncwarp", Fault::kNoSyncwarp, Kind::kRace, run_rotate},
    {"kNoWaitForCopy", Fault::kNoWaitForCopy, Kind::kUninitialized, run_pipeline},
    {"kRefillTooEarly", Fault::kRefillTooEarly, Kind::kUninitialized, run_pipeline, false},
    {"kWrongByteCount", Fault::kWrongByteCount, Kind::kAsyncCopy, run_pipeline},
    {"kNoFence", Fault::kNoFence, Kind::kFence, run_pipeline},
    {"kNoInitFence", Fault::kNoInitFence, Kind::kFence, run_pipeline},
    {"kNoInitBarrier", Fault::kNoInitBarrier, Kind::kRace, run_pipeline, false},
    {"kDeadlock", Fault::kDeadlock, Kind::kDeadlock, run_other},
    {"kReturnBeforeBarrier", Fault::kReturnBeforeBarrier, Kind::kDivergentBarrier, run_other},
    {"kWaitTooWeak", Fault::kWaitTooWeak, Kind::kUninitialized, run_other},
    {"kTwoBarriers", Fault::kTwoBarriers, Kind::kDivergentBarrier, run_other},
    {"kByteRace", Fault::kByteRace, Kind::kRace, run_other},
    {"kCopyLeftInFlight", Fault::kCopyLeftInFlight, Kind::kAsyncCopy, run_other},
    {"kBulkCopyMisaligned", Fault::kBulkCopyMisaligned, Kind::kMisaligned, run_other},
    {"kPrefetchMisaligned", Fault::kPrefetchMisaligned, Kind::kMisaligned, run_other},
    {"kPrefetchOutOfBounds", Fault::kPrefetchOutOfBounds, Kind::kOutOfBounds, run_other},
    {"kNullPointer", Fault::kNullPointer, Kind::kOutOfBounds, run_other},
    {"kStackOverflow", Fault::kStackOverflow, Kind::kFault, run_other},
};
INSTANTIATE_TEST_SUITE_P(Checker, PlantedFault, testing::ValuesIn(kPlanted),
                         [](const auto& info) { return std::string(info.param.name); });

// The one planted fault that is no access error shows in the numbers.
TEST(Checker, WrongOrderInPlaceShowsInTheNumbers) {
  std::vector<double> right, wrong;
  ASSERT_TRUE(run_swiglu_backward(Fault::kNone, &right).ok());
  ASSERT_TRUE(run_swiglu_backward(Fault::kInPlaceOrder, &wrong).ok());
  EXPECT_NE(right, wrong);
  EXPECT_TRUE(simt::reports().empty()) << all_messages();
}

TEST(Checker, RightKernelsGiveRightNumbers) {
  std::vector<double> got;
  ASSERT_TRUE(run_rotate(Fault::kNone, &got).ok());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(got[static_cast<size_t>(i)], i / 32 * 32 + (i + 1) % 32);

  const std::vector<float> x = normal<float>(2 * 7 * 1024);
  got.clear();
  ASSERT_TRUE(run_pipeline(Fault::kNone, &got).ok());
  for (size_t row = 0; row < 2; ++row) {
    double sum = 0;
    for (size_t i = 0; i < 7 * 1024; ++i) sum += x[row * 7 * 1024 + i];
    EXPECT_NEAR(got[row], sum, 1e-3);
  }

  for (const unsigned cluster : {1u, 2u, 4u}) {
    const std::vector<bf16> logits = normal<bf16>(3 * 1003);
    got.clear();
    ASSERT_TRUE(cross_entropy_of(1003, cluster)(Fault::kNone, &got).ok());
    for (size_t row = 0; row < 3; ++row) {
      double sum = 0;
      for (size_t i = 0; i < 1003; ++i)
        sum += std::exp(static_cast<double>(logits[row * 1003 + i]));
      const size_t label = row == 0 ? 1002 : row == 1 ? 0 : 501;
      EXPECT_NEAR(got[row], std::log(sum) - static_cast<double>(logits[row * 1003 + label]), 1e-4);
    }
  }
}

TEST(Checker, ReadsOfUninitialisedDeviceMemoryAreFound) {
  DeviceArray<int> in(64), out(64);
  const Status status = rotate(Fault::kNone, in.data(), out.data());
  ASSERT_FALSE(status.ok());
  ASSERT_EQ(simt::reports().size(), 1u) << all_messages();
  EXPECT_EQ(simt::reports()[0].kind, Kind::kUninitialized);
  EXPECT_EQ(simt::reports()[0].count, 64u);
  simt::reports_reset();

  DeviceArray<int> filled(std::vector<int>(64, 1));
  EXPECT_TRUE(rotate(Fault::kNone, filled.data(), out.data()).ok());
  device_mark_uninitialized(filled.data(), 256);
  EXPECT_FALSE(rotate(Fault::kNone, filled.data(), out.data()).ok());
  simt::reports_reset();
}

TEST(Checker, FreedMemoryIsOutOfBounds) {
  ASSERT_TRUE(run_rotate(Fault::kNone, nullptr).ok());  // allocates the executor's own memory
  int* in = nullptr;
  DeviceArray<int> out(64);
  {
    DeviceArray<int> freed(std::vector<int>(64, 1));
    in = freed.data();
  }
  EXPECT_FALSE(rotate(Fault::kNone, in, out.data()).ok());
  ASSERT_FALSE(simt::reports().empty());
  EXPECT_EQ(simt::reports()[0].kind, Kind::kOutOfBounds) << all_messages();
  simt::reports_reset();
}

TEST(Kernels, AreNamedWithoutWhatIsInsideThem) {
  std::vector<std::string> found;
  for (const simt::Kernel& kernel : simt::kernels())
    if (kernel.name.find("nested_kernel") != std::string::npos) found.push_back(kernel.name);
  EXPECT_EQ(found, std::vector<std::string>{"simt_tests::nested_kernel"});
}

TEST(Checker, MessageNamesKernelBlockThreadAndLine) {
  const Status status = run_swiglu(Fault::kTailOneMore, nullptr);
  const std::string line = std::to_string(*lines_that_find("kTailOneMore").begin());
  const std::string reason = status.reason;
  EXPECT_NE(reason.find("out of bounds: read of 2 bytes at byte 666 of a buffer of 666 bytes"),
            std::string::npos)
      << reason;
  EXPECT_NE(reason.find("block 2 thread 13"), std::string::npos) << reason;
  EXPECT_NE(reason.find("kernels/simt/tests/faults.cu:" + line), std::string::npos) << reason;
  EXPECT_NE(reason.find("[simt_tests::swiglu_kernel<"), std::string::npos) << reason;
  simt::reports_reset();
}

// A launch with a finding is over; the next one is not affected.
TEST(Checker, GoesOnAfterAnAbandonedLaunch) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(run_other(Fault::kNullPointer, nullptr).ok());
    EXPECT_FALSE(run_block_sums(Fault::kHalfWarpMask, nullptr).ok());
    simt::reports_reset();
    const Status status = run_block_sums(Fault::kNone, nullptr);
    EXPECT_TRUE(status.ok()) << status.reason;
  }
}

}  // namespace
}  // namespace tigon::simt_tests
