// SPDX-License-Identifier: Apache-2.0
// tigon check --coverage, run as a user runs it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "harness/run/check.h"
#include "harness/tests/program_records.h"
#include "harness/tests/run_program.h"

namespace tigon {
namespace {

Lines coverage_in(const Lines& all) {
  Lines found;
  for (const Json& line : all)
    if (line["record"] == "coverage") found.push_back(line);
  return found;
}

TEST(TigonProgram, says_what_a_check_met_of_the_kernels) {
  if (on_gpu()) GTEST_SKIP() << "of a GPU it is not known";
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "records.jsonl").string();
  const ProgramRun run = run_tigon({"check", "rope", "--quick", "--coverage", "--json", file});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("kernels launched"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("not launched: rope::rotate_kernel<"), std::string::npos) << run.out;
  const Lines records = records_in(file);
  EXPECT_EQ(schema_violation(records), "");
  ASSERT_EQ(coverage_in(records).size(), 1u);
  EXPECT_EQ(coverage_in(records).front()["file"], "kernels/rope/rope.cu");
}

TEST(TigonProgram, takes_the_paths_of_an_older_gpu_and_says_what_only_a_gpu_runs) {
  if (on_gpu()) GTEST_SKIP() << "of a GPU it is not known";
  const TemporaryFolder folder;
  const std::string wide = "softmax/backward/fused/bf16/T=3,V=32000";  // walks over a ring
  const auto files = [&](std::vector<std::string> more) {
    const std::string file =
        (folder.path() / ("records" + std::to_string(more.size()) + ".jsonl")).string();
    std::vector<std::string> arguments = {"check", "--case",     wide,     "--executor",
                                          "fast",  "--coverage", "--json", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = run_tigon(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    EXPECT_NE(run.out.find("only a GPU runs:\n  matrix products"), std::string::npos) << run.out;
    std::set<std::string> launched;
    for (const Json& row : coverage_in(records_in(file))) launched.insert(row["file"]);
    return launched;
  };
  const std::string ring = "kernels/softmax/backward_ring.h";
  const std::set<std::string> usual = files({}), older = files({"--as", "sm_80"});
  EXPECT_TRUE(usual.count(ring)) << *usual.begin();
  EXPECT_FALSE(older.empty() || older.count(ring)) << "bulk copies of sm_90";
  EXPECT_EQ(run_tigon({"check", "--case", wide, "--as", "sm_70"}).exit_code, 2);
  EXPECT_EQ(run_tigon({"check", "--case", wide, "--executor", "sm_70"}).exit_code, 2);
}

TEST(TigonProgram, checks_long_rows_with_the_limits_of_an_older_gpu) {
  if (on_gpu()) GTEST_SKIP() << "a GPU has its own";
  const ProgramRun run = run_tigon({"check", "log_prob", "--quick", "--dtype", "f32"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* executor : {"[fast]", "[checked]", "[sm_80]"})
    EXPECT_NE(run.out.find(executor), std::string::npos) << executor << run.out;
}

// Label long, of the records of the whole plan, which the test `check` leaves: every kernel is
// launched, and every path meets what a launch of it can meet.
TEST(EveryKernel, is_launched_by_check) {
  if (on_gpu()) GTEST_SKIP() << "of a GPU it is not known";
  const char* file = std::getenv("TIGON_CHECKED");
  ASSERT_NE(file, nullptr) << "it names the records of ./tigon check --coverage; ctest gives it";
  const Lines rows = coverage_in(records_in(file));
  EXPECT_GT(rows.size(), 10u);
  for (const Json& row : rows) {
    EXPECT_EQ(row["missing"].dump(), "[]") << row["file"].dump();
    EXPECT_EQ(row["open"].dump(), "[]") << row["file"].dump();
  }
}

}  // namespace
}  // namespace tigon
