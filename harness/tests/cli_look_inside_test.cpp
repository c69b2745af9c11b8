// SPDX-License-Identifier: Apache-2.0
// trace, profile and debug: one case seen from the inside.
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

#include "harness/run/check.h"
#include "harness/tests/run_program.h"

namespace tigon {
namespace {

const char* const kCase = "rms_norm/forward/fused/bf16/T=16,H=512";

bool on_host() { return default_executor() != "cuda"; }

TEST(TigonProgram, a_trace_names_source_lines_beside_the_least_bytes) {
  if (!on_host()) GTEST_SKIP() << "counted by the host executor";
  const ProgramRun run = run_tigon({"trace", kCase});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(std::regex_search(run.out, std::regex("\\.cu:[0-9]+ +16 KiB"))) << run.out;
  EXPECT_NE(run.out.find("least bytes by tensor: x 16 KiB w 1 KiB y 16 KiB"), std::string::npos)
      << run.out;
  EXPECT_EQ(run.last_line(), "1 passed, 0 failed, 0 skipped");
}

TEST(TigonProgram, a_profile_without_a_gpu_is_counted_and_says_so) {
  if (!on_host()) GTEST_SKIP() << "the host executor's counters";
  const ProgramRun run = run_tigon({"profile", kCase});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("counted on the host executor: no times"), std::string::npos) << run.out;
  EXPECT_EQ(run.last_line().rfind("Memory", 0), 0u) << run.out;
  EXPECT_EQ(run_tigon({"profile", kCase, "--from", "/dev/null/ncu.csv"}).exit_code, kExitUsage);
}

TEST(TigonProgram, a_trace_of_a_kernel_from_outside_says_who_takes_it) {
  if (!on_host()) GTEST_SKIP() << "counted by the host executor";
  const ProgramRun run = run_tigon({"trace", "rms_norm/forward/plugin:mine/bf16/T=16,H=512"});
  EXPECT_EQ(run.exit_code, kExitUsage);
  EXPECT_NE(run.err.find("those of a library that --impl-from names"), std::string::npos)
      << run.err;
}

TEST(TigonProgram, debug_needs_a_block_and_its_program) {
  if (!on_host()) GTEST_SKIP() << "runs on the host executor";
  const ProgramRun run = run_tigon({"debug", kCase, "--block", "one"});
  EXPECT_EQ(run.exit_code, kExitUsage);
  EXPECT_NE(run.err.find("a block is X, X,Y or X,Y,Z"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace tigon
