// SPDX-License-Identifier: Apache-2.0
// Work in a child process: lines arrive, and however the child ends is known.
#include "harness/measure/run_in_child.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace tigon {
namespace {

struct Heard {
  std::vector<int> numbers;
  WorkerEnd end;
};

// Runs work that emits 1 and 2 and then does `what`.
Heard after_two_lines(const std::function<void()>& what, double silence_s = 10) {
  Heard heard;
  heard.end = run_in_child(
      [&](const Emit& emit) {
        emit({{"n", 1}});
        emit({{"n", 2}});
        what();
      },
      [&](const Json& line) { heard.numbers.push_back(line["n"]); }, silence_s);
  return heard;
}

TEST(Worker, lines_arrive_in_order_and_the_end_is_known) {
  const Heard heard = after_two_lines([] {});
  EXPECT_EQ(heard.numbers, (std::vector<int>{1, 2}));
  EXPECT_EQ(heard.end.kind, WorkerEnd::kDone);
}

TEST(Worker, a_crash_keeps_the_lines_before_it) {
  const Heard heard = after_two_lines([] { std::abort(); });
  EXPECT_EQ(heard.numbers.size(), 2u);
  EXPECT_EQ(heard.end.kind, WorkerEnd::kCrashed);
  EXPECT_NE(heard.end.reason.find("signal 6"), std::string::npos) << heard.end.reason;
}

TEST(Worker, an_early_exit_is_a_crash_even_with_code_0) {
  EXPECT_EQ(after_two_lines([] { _exit(0); }).end.kind, WorkerEnd::kCrashed);
}

TEST(Worker, an_exception_is_its_text) {
  const Heard heard = after_two_lines([] { throw std::runtime_error("no luck"); });
  EXPECT_EQ(heard.end.kind, WorkerEnd::kFailed);
  EXPECT_EQ(heard.end.reason, "no luck");
}

TEST(Worker, silence_is_a_timeout) {
  const Heard heard = after_two_lines([] { pause(); }, 0.3);
  EXPECT_EQ(heard.end.kind, WorkerEnd::kTimeout);
  EXPECT_EQ(heard.numbers.size(), 2u);
}

TEST(Worker, an_exception_of_the_listener_passes_through) {
  EXPECT_THROW(run_in_child(
                   [](const Emit& emit) {
                     emit({{"n", 1}});
                   },
                   [](const Json&) { throw RecordError("disk full"); }, 10),
               RecordError);
}

}  // namespace
}  // namespace tigon
