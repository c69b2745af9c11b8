// SPDX-License-Identifier: Apache-2.0
// What a call of the library costs on top of the typed function: at most 1 us. The code between
// them is that of the library, with its options of the compiler.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "kernels/call/erase.h"
#include "kernels/call/registry.h"
#include "kernels/call/typed.h"
#include "kernels/rms_norm/rms_norm.h"
#include "most_options.h"

namespace tigon::call {
namespace {

constexpr double kMostSeconds = 1e-6;
constexpr int kRounds = 201, kCalls = 100;

// Time of this thread alone: other processes may have the core in between.
double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class F>
double seconds_of_a_call(const F& call) {
  const double begun = seconds();
  for (int i = 0; i < kCalls; ++i)
    if (!call()) return 1;
  return (seconds() - begun) / kCalls;
}

// Median of what the second takes longer than the first, measured in turns.
template <class First, class Second>
double difference(const First& first, const Second& second) {
  std::vector<double> differences;
  for (int round = 0; round < kRounds; ++round) {
    const double before = seconds_of_a_call(first);
    differences.push_back(seconds_of_a_call(second) - before);
  }
  const auto middle = differences.begin() + kRounds / 2;
  std::nth_element(differences.begin(), middle, differences.end());
  return *middle;
}

class Overhead : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "a sanitizer multiplies the time of a call";
#endif
  }
};

TEST_F(Overhead, of_a_short_signature_is_at_most_a_microsecond) {
  auto args = every_tensor_given<rms_norm::Forward<BF16>>(8);
  args.x.shape[0] = args.y.shape[0] = args.rstd.shape[0] = 0;  // it ends before its launch
  const double found = difference([&] { return rms_norm::forward(args, nullptr).ok(); },
                                  [&] { return tigon::run(args, nullptr).ok(); });
  RecordProperty("seconds", std::to_string(found * 1e9) + "e-9");
  EXPECT_LE(found, kMostSeconds);
}

// Of its workspace, which needs no memory of a device.
TEST_F(Overhead, of_the_op_with_most_options_is_at_most_a_microsecond) {
  using Args = MostOptions<BF16>;
  for (const tigon_op& op : all_ops())
    EXPECT_LE(static_cast<const OpState*>(op.state)->info.options.size(), option_count<Args>())
        << op.name;
  const Args args = every_tensor_given<Args>(64);
  ASSERT_GT(workspace(args), 0);
  const double found = difference([&] { return workspace(args) > 0; },
                                  [&] { return tigon::workspace_bytes(args) > 0; });
  RecordProperty("op", Args::kName);
  RecordProperty("seconds", std::to_string(found * 1e9) + "e-9");
  EXPECT_LE(found, kMostSeconds) << Args::kName;
}

}  // namespace
}  // namespace tigon::call
