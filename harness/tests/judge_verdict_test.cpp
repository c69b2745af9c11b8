// SPDX-License-Identifier: Apache-2.0
// Names, counts and exit codes of verdicts.
#include "harness/judge/verdict.h"

#include <gtest/gtest.h>

namespace tigon {
namespace {

TEST(Verdict, names_parse_back) {
  for (int i = 0; i <= static_cast<int>(Verdict::kNotRun); ++i) {
    const auto v = static_cast<Verdict>(i);
    EXPECT_EQ(parse_verdict(name_of(v)), v);
  }
  EXPECT_FALSE(parse_verdict("fine").has_value());
}

TEST(Tally, only_passed_is_green) {
  Tally t;
  EXPECT_EQ(t.exit_code(), kExitNothing);
  t.add(Verdict::kSkipped);
  t.add(Verdict::kUnsupported);
  EXPECT_EQ(t.exit_code(), kExitNothing);
  t.add(Verdict::kPassed);
  EXPECT_EQ(t.exit_code(), kExitOk);
  EXPECT_EQ(t.line(), "1 passed, 0 failed, 2 skipped");
}

TEST(Tally, the_lowest_code_wins) {
  Tally t;
  t.add(Verdict::kPassed);
  t.add(Verdict::kTimeout);
  EXPECT_EQ(t.exit_code(), kExitInfrastructure);
  t.add(Verdict::kNonfinite);
  EXPECT_EQ(t.exit_code(), kExitIncorrect);
  t.add(Verdict::kCrashed);
  EXPECT_EQ(t.exit_code(), kExitIncorrect);
  EXPECT_EQ(t.failed(), 3);
}

TEST(Tally, every_failure_has_a_code) {
  for (int i = 0; i <= static_cast<int>(Verdict::kNotRun); ++i) {
    const auto v = static_cast<Verdict>(i);
    EXPECT_EQ(exit_code_of(v) != kExitOk, is_failure(v)) << name_of(v);
  }
}

}  // namespace
}  // namespace tigon
