// SPDX-License-Identifier: Apache-2.0
// The list of planted faults against the contracts and the catalogue; and that a score tells
// caught, survived and equivalent apart. That every fault has its place, the build shows.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "harness/mutants/catalogue.h"
#include "harness/mutants/external.h"
#include "harness/mutants/score.h"
#include "harness/run/cases/case.h"
#include "harness/run/check.h"

namespace tigon {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A kernel reads as if there were no harness.
TEST(MutantList, has_no_switch_in_the_kernels) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(TIGON_SOURCE_DIR "/kernels"))
    if (entry.is_regular_file()) {
      ++files;
      EXPECT_EQ(text_of(entry.path()).find("planted("), std::string::npos) << entry.path();
    }
  EXPECT_GT(files, 100);
}

// A fault is listed beside the op whose folder its first change is in.
TEST(MutantList, has_each_fault_beside_its_family) {
  for (const Mutant& m : all_mutants()) {
    const auto folder = std::filesystem::path(m.edits.front().file).parent_path().filename();
    EXPECT_EQ(std::filesystem::path(m.source).stem(), folder) << m.name;
  }
}

TEST(MutantList, names_passes_of_contracts_and_says_what_is_wrong) {
  for (const Mutant& m : all_mutants()) {
    EXPECT_FALSE(m.what.empty()) << m.name;
    EXPECT_FALSE(m.executors.empty()) << m.name;
    EXPECT_NO_THROW(std::regex(m.hint)) << m.name;
    EXPECT_FALSE(m.targets.empty()) << m.name;
    for (const MutantTarget& target : m.targets) {
      const OpSpec* op = find_op(target.op);
      ASSERT_NE(op, nullptr) << m.name << ": " << target.op;
      for (const std::string& pass : target.passes)
        EXPECT_NE(find_pass(*op, pass), nullptr) << m.name << ": " << target.op << " " << pass;
    }
    for (const Equivalent& e : m.equivalents) EXPECT_GT(e.proof.size(), 30u) << m.name;
  }
}

TEST(MutantList, covers_the_catalogue) {
  int number = 0;
  for (const CatalogueEntry& entry : fault_catalogue()) EXPECT_EQ(entry.number, ++number);
  EXPECT_EQ(number, 48);
  EXPECT_EQ(unexplained_catalogue_numbers(), std::vector<int>{});
}

std::vector<MutantResult> score_of(const char* filter, const char* op, DType dtype) {
  std::vector<MutantResult> results;
  run_mutants({.ops = {op}, .dtypes = {dtype}, .filter = filter, .jobs = 1},
              [&](const MutantResult& r) { results.push_back(r); });
  return results;
}

TEST(MutantScore, tells_caught_and_equivalent_apart) {
  const auto caught = score_of("^rope.sin_sign$", "rope", DType::kF32);
  ASSERT_EQ(caught.size(), 2u);
  EXPECT_EQ(caught[0].outcome, MutantOutcome::kCaught) << caught[0].reason;
  EXPECT_EQ(caught[0].verdict, Verdict::kIncorrectNumerical);
  EXPECT_EQ(case_id(parse_case(caught[0].case_id)), caught[0].case_id);
  const auto equivalent = score_of("^vec.store_truncates$", "rope", DType::kF32);
  ASSERT_EQ(equivalent.size(), 2u);
  EXPECT_EQ(equivalent[0].outcome, MutantOutcome::kEquivalent) << equivalent[0].reason;
  EXPECT_GT(equivalent[0].cases, 1);
}

TEST(MutantScore, counts_a_fault_that_changes_nothing_as_survived) {
  Mutant harmless = all_mutants().front();
  harmless.name = "no switch has this name";
  harmless.equivalents.clear();
  const MutantResult r =
      score_mutant(harmless, harmless.targets[0].op, harmless.targets[0].passes[0], DType::kBF16);
  EXPECT_EQ(r.outcome, MutantOutcome::kSurvived) << r.reason;
  EXPECT_TRUE(is_failure(r.outcome));
}

TEST(MutantScore, refutes_a_false_proof) {
  Mutant wrong = all_mutants().front();
  wrong.equivalents = {{.proof = "of something that is not so"}};
  const MutantResult r =
      score_mutant(wrong, wrong.targets[0].op, wrong.targets[0].passes[0], DType::kBF16);
  EXPECT_EQ(r.outcome, MutantOutcome::kInvalid) << r.reason;
  EXPECT_NE(r.reason.find("declared equivalent"), std::string::npos);
}

// What should be right has the same fault.
TEST(MutantScore, counts_no_failure_of_a_case_that_fails_without_the_fault) {
  std::vector<MutantResult> results;
  run_mutants({.ops = {"rope"},
               .dtypes = {DType::kF32},
               .filter = "^rope.backward_turns_forward$",
               .jobs = 1,
               .fault_of_baseline = "rope.backward_turns_forward"},
              [&](const MutantResult& r) { results.push_back(r); });
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].outcome, MutantOutcome::kInvalid) << results[0].reason;
  EXPECT_NE(results[0].reason.find("without the fault"), std::string::npos) << results[0].reason;
}

TEST(MutantScore, gives_a_sampled_fault_the_cases_that_pass_its_place) {
  if (default_executor() != "fast") GTEST_SKIP() << "kernels on a GPU do not tell";
  MutantRequest request{.ops = {"rope"}, .dtypes = {DType::kF32}, .jobs = 2};
  for (const Mutant& m : all_mutants())
    if (m.name == "rope.backward_turns_forward") request.faults = {m, m};
  ASSERT_EQ(request.faults.size(), 2u);
  for (Mutant& m : request.faults) {
    m.group = MutantGroup::kSampled;
    m.executors = {"fast"};
  }
  request.faults[1].name = "no switch has this name";
  std::vector<MutantResult> results;
  run_mutants(request, [&](const MutantResult& r) { results.push_back(r); });
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].outcome, MutantOutcome::kCaught) << results[0].reason;
  EXPECT_EQ(results[0].pass, "backward");
  EXPECT_EQ(results[1].outcome, MutantOutcome::kSurvived) << results[1].reason;
  EXPECT_EQ(results[1].reason, "no case passes its place");
}

// An external program is a shell script here.
std::vector<ExternalResult> run_script(const std::string& text) {
  const std::string name = "external-script-of-mutant-tests";
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
  std::ofstream(path) << "#!/bin/sh\n" << text;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  std::vector<ExternalResult> results;
  run_external({"comparator", name}, [&](const ExternalResult& r) { results.push_back(r); });
  std::filesystem::remove(path);
  return results;
}

TEST(ExternalGroup, reads_one_fault_a_line_and_notices_a_bad_end) {
  const std::string good = R"({"name":"a","what":"b","caught":true,"by":["t"]})";
  EXPECT_EQ(run_script("echo '" + good + "'").size(), 1u);
  EXPECT_TRUE(run_script("echo '" + good + "'")[0].caught);
  const auto without = run_script(
      R"(echo '{"mutant":"a","defence":"b","outcome":"not_applicable","verdict":"passed",)"
      R"("case_id":"","reason":"no such kernel"}')");
  ASSERT_EQ(without.size(), 1u);
  EXPECT_FALSE(without[0].applies);
  for (const std::string& bad : {"echo '" + good + "'; exit 3", std::string("true"),
                                 "echo '" + good + "'; kill -9 $$", std::string("echo nonsense")}) {
    bool missed = false;
    for (const ExternalResult& r : run_script(bad)) missed = missed || !r.caught;
    EXPECT_TRUE(missed) << bad;
  }
}

}  // namespace
}  // namespace tigon
