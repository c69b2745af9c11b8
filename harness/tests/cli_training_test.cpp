// SPDX-License-Identifier: Apache-2.0
// The built program trains: valid records, tables of parts, controls, experiments.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "harness/run/check.h"
#include "harness/tests/program_records.h"
#include "harness/tests/run_program.h"

namespace tigon {
namespace {

TEST(TigonProgram, a_short_training_leaves_valid_records) {
  if (!std::filesystem::exists("/usr/share/common-licenses")) GTEST_SKIP() << "no default text";
  const TemporaryFolder folder;
  const ProgramRun run = run_tigon({"converge", "--dtype", "f32", "--steps", "2", "--sequence",
                                    "16", "--batch", "1", "--out", folder.path().string()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_EQ(run.err.rfind("tigon: converge tiny: 0 of ", 0), 0u) << run.err;  // before a step
  const Lines lines = records_in(folder.path() / "records.jsonl");
  EXPECT_EQ(schema_violation(lines), "");
  const auto kinds = kinds_of(lines);
  for (const char* kind : {"converge_gradients", "converge_step", "converge", "converge_verdict"})
    EXPECT_TRUE(kinds.count(kind)) << kind;
}

int64_t count_of(const Lines& lines, const std::string& outcome) {
  return std::count_if(lines.begin(), lines.end(), [&](const auto& line) {
    return line["record"] == "converge_parts" && line["outcome"] == outcome;
  });
}

TEST(TigonProgram, a_step_by_part_is_a_table_and_goes_on_where_it_was) {
  const TemporaryFolder folder;
  const ProgramRun run =
      run_tigon({"converge", "--parts", "--each", "-a", "T=[8,16]", "-a", "V=256", "--batch", "1",
                 "--steps", "1", "--out", folder.path().string()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  for (const char* text : {"naive + linear_cross_entropy", "attention by ", "peak, planned",
                           "V=256", "of its rate alone"})
    EXPECT_NE(run.out.find(text), std::string::npos) << text << " in " << run.out;
  if (default_executor() != "cuda") {
    EXPECT_NE(run.out.find("not the speed of a kernel"), std::string::npos) << run.out;
  }
  const Lines lines = records_in(folder.path() / "records.jsonl");
  EXPECT_EQ(schema_violation(lines), "");
  EXPECT_EQ(count_of(lines, "measured"), 2 * 6) << "naive, fused and four alone";
  for (const auto& line : lines) {
    if (line["record"] != "converge_parts") continue;
    int64_t bytes = line["unused_bytes"];
    for (const auto& part : line["parts"]) bytes += part["bytes"].get<int64_t>();
    EXPECT_EQ(bytes, line["peak_bytes"]) << line.dump();
  }
  const ProgramRun again = run_tigon({"converge", "--resume", folder.path().string()});
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_NE(again.out.find("attention"), std::string::npos) << "the table is shown again";
  EXPECT_EQ(count_of(records_in(folder.path() / "records.jsonl"), "measured"), 2 * 6);
}

TEST(TigonProgram, memory_that_runs_out_is_a_row_of_the_table) {
  const TemporaryFolder folder;
  const ProgramRun run =
      run_tigon({"converge", "--parts", "--plan", "--medusa", "3", "--frozen", "-a",
                 "T[pow2]=[6:20:14]", "--memory", "1GiB", "--out", folder.path().string()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  for (const char* text : {"out of memory", "medusa=3", "frozen=true"})
    EXPECT_NE(run.out.find(text), std::string::npos) << text << " in " << run.out;
  const Lines lines = records_in(folder.path() / "records.jsonl");
  EXPECT_EQ(schema_violation(lines), "");
  EXPECT_EQ(count_of(lines, "planned"), 2);
  EXPECT_EQ(count_of(lines, "out of memory"), 2);
}

TEST(LongTraining, every_negative_control_is_caught_at_a_step) {
  const TemporaryFolder folder;
  const ProgramRun run =
      run_tigon({"converge", "--controls", "--quick", "--out", folder.path().string()});
  if (run.out.find("no program tigon-controls") != std::string::npos ||
      run.err.find("no program tigon-controls") != std::string::npos)
    GTEST_SKIP() << run.err;
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const Lines lines = records_in(folder.path() / "records.jsonl");
  EXPECT_EQ(schema_violation(lines), "");
  int caught = 0;
  for (const auto& line : lines) {
    if (line["record"] != "mutant") continue;
    EXPECT_EQ(line["outcome"], "caught") << line.dump();
    EXPECT_GE(line["step"], 1) << line.dump();
    ++caught;
  }
  EXPECT_GE(caught, 8);
}

TEST(TigonProgram, an_experiment_ends_with_a_table_of_its_claims) {
  const TemporaryFolder folder;
  const ProgramRun run = run_tigon(
      {"converge", "--experiment", "rms_norm", "--quick", "--out", folder.path().string()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("claims: "), std::string::npos) << run.out;
  const Lines lines = records_in(folder.path() / "records.jsonl");
  EXPECT_EQ(schema_violation(lines), "");
  EXPECT_TRUE(kinds_of(lines).count("claim"));
}

TEST(LongTraining,
     next_action_compares_predictors_and_calls_published_figures_those_of_other_data) {
  const TemporaryFolder folder;
  const ProgramRun run = run_tigon(
      {"converge", "--experiment", "next_action", "--quick", "--out", folder.path().string()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("made-up course of 400 resources, seed 1"), std::string::npos) << run.out;
  const Lines lines = records_in(folder.path() / "records.jsonl");
  EXPECT_EQ(schema_violation(lines), "");
  std::set<std::string> predictors, claims;
  for (const auto& line : lines) {
    if (line["record"] == "next_action") predictors.insert(line["predictor"]);
    if (line["record"] == "claim") claims.insert(line["verdict"]);
  }
  for (const char* name : {"syllabus", "unigram", "LSTM", "transformer", "true law"})
    EXPECT_TRUE(predictors.count(name)) << name;
  EXPECT_TRUE(claims.count("other data"));
  EXPECT_TRUE(kinds_of(lines).count("next_action_gap"));
}

// Without a syllabus there is no number for it, and days are no order.
TEST(TigonProgram, next_action_takes_a_log_of_learners) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "studentVle.csv").string();
  std::ofstream log(file);
  log << "code_module,code_presentation,id_student,id_site,date,sum_click\n";
  for (int learner = 0; learner < 40; ++learner)
    for (int day = 0; day < 30; ++day)
      log << "AAA,2013J," << learner << ",site" << (learner + day) % 7 << ',' << day << ",1\n";
  log.close();
  const ProgramRun run = run_tigon({"converge", "--experiment", "next_action", "--quick", "--data",
                                    file, "--json", (folder.path() / "records.jsonl").string()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  for (const char* text : {"order inside a day is not real", "these data have no syllabus"})
    EXPECT_NE(run.out.find(text), std::string::npos) << run.out;
  const Lines lines = records_in(folder.path() / "records.jsonl");
  EXPECT_EQ(schema_violation(lines), "");
  const auto syllabus = std::ranges::find_if(lines, [](const auto& line) {
    return line["record"] == "next_action" && line["predictor"] == "syllabus";
  });
  ASSERT_NE(syllabus, lines.end());
  EXPECT_TRUE((*syllabus)["top1"].is_null());
}

}  // namespace
}  // namespace tigon
