// SPDX-License-Identifier: Apache-2.0
// The list of planted faults against the contracts and the catalogue; and that a score tells
// caught, survived and equivalent apart. That every fault has its place, the build shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>

#include "harness/mutants/catalogue.h"
#include "harness/mutants/external.h"
#include "harness/mutants/fault_cases.h"
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

Mutant mutant_named(const std::string& name) {
  for (const Mutant& m : all_mutants())
    if (m.name == name) return m;
  throw std::logic_error("no fault " + name);
}

std::vector<MutantResult> results_of(const MutantRequest& request) {
  std::vector<MutantResult> results;
  run_mutants(request, [&](const MutantResult& r) { results.push_back(r); });
  return results;
}
std::vector<MutantResult> score_of(const char* filter, const char* op, DType dtype) {
  return results_of({.ops = {op}, .dtypes = {dtype}, .filter = filter, .jobs = 1});
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
  Mutant harmless = mutant_named("rope.sin_sign");  // of an op whose cases are quick
  harmless.name = "no switch has this name";
  harmless.equivalents.clear();
  const MutantResult r =
      score_mutant(harmless, harmless.targets[0].op, harmless.targets[0].passes[0], DType::kBF16);
  EXPECT_EQ(r.outcome, MutantOutcome::kSurvived) << r.reason;
  EXPECT_TRUE(is_failure(r.outcome));
}

TEST(MutantScore, refutes_a_false_proof) {
  Mutant wrong = mutant_named("rope.sin_sign");
  wrong.equivalents = {{.proof = "of something that is not so"}};
  const MutantResult r =
      score_mutant(wrong, wrong.targets[0].op, wrong.targets[0].passes[0], DType::kBF16);
  EXPECT_EQ(r.outcome, MutantOutcome::kInvalid) << r.reason;
  EXPECT_NE(r.reason.find("declared equivalent"), std::string::npos);
}

// What should be right has the same fault.
TEST(MutantScore, counts_no_failure_of_a_case_that_fails_without_the_fault) {
  for (const bool shares : {false, true}) {
    const auto results = results_of({.ops = {"rope"},
                                     .dtypes = {DType::kF32},
                                     .filter = "^rope.backward_turns_forward$",
                                     .shares_processes = shares,
                                     .jobs = 1,
                                     .fault_of_baseline = "rope.backward_turns_forward"});
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].outcome, MutantOutcome::kInvalid) << results[0].reason;
    EXPECT_NE(results[0].reason.find("without the fault"), std::string::npos) << results[0].reason;
  }
}

// A kernel that reads gigabytes away from its tensor finds other memory or none, as the process
// happens to be loaded.
bool is_wild(const MutantResult& r) {
  return r.reason.find("invalid memory access") != std::string::npos;
}

// As on a GPU: faults that crash, hang or write where they must not, one after the other.
TEST(MutantScore, is_the_same_of_faults_that_share_a_process) {
  MutantRequest request{.ops = {"rms_norm"}, .dtypes = {DType::kBF16}, .part = true};
  const auto own = results_of(request);
  request.shares_processes = true;
  const auto shared = results_of(request);
  ASSERT_EQ(shared.size(), own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    const std::string name = own[i].mutant->name + " " + own[i].executor + ": " + shared[i].reason +
                             "; alone: " + own[i].reason;
    EXPECT_EQ(shared[i].outcome, own[i].outcome) << name;
    if (!is_wild(shared[i]) && !is_wild(own[i])) {
      EXPECT_EQ(shared[i].verdict, own[i].verdict) << name;
    }
    EXPECT_EQ(shared[i].case_id, own[i].case_id) << name;
    EXPECT_EQ(shared[i].cases, own[i].cases) << name;
  }
}

// Of one plan for all, each fault meets what a plan for its pass and element type has.
TEST(FaultCases, are_those_of_a_plan_for_the_pass_alone) {
  const MutantRequest request{.ops = {"rope", "softmax"}, .part = true};
  FaultCases cases(request, request.ops);
  std::set<std::string> seen;
  for (const MutantResult& r : select_mutants(request))
    for (const Tier tier : {Tier::kTiny, Tier::kCheck}) {
      const std::string place = r.op + r.pass + name_of(r.dtype) + r.executor;
      if (!seen.insert(place + std::to_string(static_cast<int>(tier))).second) continue;
      CheckRequest alone;
      alone.ops = {r.op}, alone.passes = {r.pass}, alone.dtypes = {r.dtype};
      alone.implementations = {"fused"};
      alone.executor = r.executor;
      alone.tier = r.executor == default_executor() ? tier : Tier::kTiny;
      std::vector<std::string> wanted, got;
      for (const Case& c : select_cases(alone)) wanted.push_back(case_id(c));
      for (const Case& c : cases.of(r, tier)) got.push_back(case_id(c));
      std::sort(wanted.begin(), wanted.end()), std::sort(got.begin(), got.end());
      ASSERT_EQ(got, wanted) << r.mutant->name;
    }
}

// Two sampled faults of the fast executor: one of rope's backward, one that is in no kernel.
std::vector<Mutant> of_rope_and_nowhere() {
  std::vector<Mutant> faults;
  for (const Mutant& m : all_mutants())
    if (m.name == "rope.backward_turns_forward") faults = {m, m};
  for (Mutant& m : faults) {
    m.group = MutantGroup::kSampled;
    m.executors = {"fast"};
  }
  if (!faults.empty()) faults[1].name = "no switch has this name";
  return faults;
}

TEST(MutantScore, gives_a_sampled_fault_the_cases_that_pass_its_place) {
  if (default_executor() != "fast") GTEST_SKIP() << "kernels on a GPU do not tell";
  MutantRequest request{.ops = {"rope"}, .dtypes = {DType::kF32}, .jobs = 2};
  request.faults = of_rope_and_nowhere();
  ASSERT_EQ(request.faults.size(), 2u);
  size_t surveyed = 0, of_all = 0;
  request.on_survey = [&](size_t done, size_t of) {
    EXPECT_EQ(done, ++surveyed);
    of_all = of;
  };
  std::vector<MutantResult> results;
  run_mutants(request, [&](const MutantResult& r) { results.push_back(r); });
  ASSERT_EQ(results.size(), 2u);
  EXPECT_GT(surveyed, 0u);
  EXPECT_EQ(surveyed, of_all);
  EXPECT_EQ(results[0].outcome, MutantOutcome::kCaught) << results[0].reason;
  EXPECT_EQ(results[0].pass, "backward");
  EXPECT_EQ(results[1].outcome, MutantOutcome::kSurvived) << results[1].reason;
  EXPECT_EQ(results[1].reason, "no case passes its place");
}

TEST(MutantScore, asks_the_ops_that_share_a_source_when_a_sampled_fault_survives) {
  if (default_executor() != "fast") GTEST_SKIP() << "kernels on a GPU do not tell";
  MutantRequest request{.ops = {"swiglu"}, .dtypes = {DType::kF32}, .jobs = 2};
  request.faults = of_rope_and_nowhere();
  ASSERT_EQ(request.faults.size(), 2u);
  for (Mutant& m : request.faults) m.targets = {{"swiglu", {"forward"}}};
  request.faults[0].also = {{"rope", {"forward", "backward"}}};
  request.faults[1].also = {{"swiglu", {"forward"}}};  // no other one
  std::map<std::string, MutantResult> results;
  run_mutants(request, [&](const MutantResult& r) { results[r.mutant->name] = r; });
  ASSERT_EQ(results.size(), 2u);
  const MutantResult &shared = results["rope.backward_turns_forward"],
                     &other = results["no switch has this name"];
  EXPECT_EQ(shared.outcome, MutantOutcome::kCaught) << shared.reason;
  EXPECT_EQ(shared.op, "swiglu");
  EXPECT_EQ(shared.case_id.rfind("rope/backward/", 0), 0u) << shared.case_id;
  EXPECT_EQ(other.outcome, MutantOutcome::kSurvived) << other.reason;
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
