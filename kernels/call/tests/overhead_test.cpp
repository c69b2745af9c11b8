// SPDX-License-Identifier: Apache-2.0
// What a call costs on top of its launcher: at most 1 us.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "kernels/call/erase.h"
#include "kernels/call/typed.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "kernels/rms_norm/rms_norm.h"

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
    if (!call().ok()) return 1;
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

// A launcher that launches nothing, where the compiler cannot see it.
template <class Args>
Status nothing(const Args&, Stream) {
  return {};
}
template <class Args>
Status (*volatile launcher)(const Args&, Stream) = nothing<Args>;

struct Launchers {
  template <class Args>
  Status run(const Args& args, const Scratch&, Stream stream) const {
    return launcher<Args>(args, stream);
  }
};

template <class Args>
double overhead() {
  static const LauncherState<Launchers> state = {{pass_info<Args>(), ""}, {}};
  const tigon_op op = make_op<Args>("nothing", &state);
  // Every tensor is given, so that every tensor is read.
  static typename Args::Elem memory[1];
  Args args;
  for_each_field<Args>([&](const auto& field) {
    using View = std::remove_cvref_t<decltype(args.*(field.member))>;
    (args.*(field.member)).data = reinterpret_cast<typename View::Elem*>(memory);
  });
  return difference([&] { return launcher<Args>(args, nullptr); },
                    [&] { return tigon::run(&op, args, nullptr); });
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
  const double found = overhead<rms_norm::Forward<BF16>>();
  RecordProperty("seconds", std::to_string(found * 1e9) + "e-9");
  EXPECT_LE(found, kMostSeconds);
}

TEST_F(Overhead, of_the_longest_signature_is_at_most_a_microsecond) {
  const double found = overhead<linear_cross_entropy::ForwardBackward<BF16>>();
  RecordProperty("seconds", std::to_string(found * 1e9) + "e-9");
  EXPECT_LE(found, kMostSeconds);
}

}  // namespace
}  // namespace tigon::call
