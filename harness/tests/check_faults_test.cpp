// SPDX-License-Identifier: Apache-2.0
// Every kind of fault gives its verdict, and the rest of the run goes on.
#include <gtest/gtest.h>

#include <chrono>

#include "harness/run/check.h"

namespace tigon {
namespace {

struct Expectation {
  const char* implementation;
  Verdict verdict;
  const char* reason;  // a part of it
};

CheckRequest request_for(const std::string& implementation) {
  CheckRequest request;
  request.implementations = {implementation};
  request.tier = Tier::kTiny;
  request.dtypes = {DType::kBF16};
  request.filter = "N=3,M=5,inputs=normal,seed=42$";
  request.timeout_s = 1.5;
  return request;
}

std::vector<CheckResult> results_of(const CheckRequest& request, CheckReport* report) {
  std::vector<CheckResult> results;
  *report = run_checks(request, [&](const CheckResult& r) { results.push_back(r); });
  return results;
}

class Fault : public testing::TestWithParam<Expectation> {};

TEST_P(Fault, gives_its_verdict) {
  CheckReport report;
  const auto results = results_of(request_for(GetParam().implementation), &report);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_STREQ(name_of(results[0].verdict), name_of(GetParam().verdict)) << results[0].reason;
  EXPECT_NE(results[0].reason.find(GetParam().reason), std::string::npos) << results[0].reason;
  EXPECT_EQ(report.exit_code(), GetParam().verdict == Verdict::kUnsupported
                                    ? kExitNothing
                                    : exit_code_of(GetParam().verdict));
  EXPECT_LT(report.seconds, 4);  // 1.5 s is the limit of a case
  EXPECT_EQ(results[0].repro, "./tigon check --case '" + case_id(results[0].c) + "'");
}

INSTANTIATE_TEST_SUITE_P(
    Faults, Fault,
    testing::Values(
        Expectation{"right", Verdict::kPassed, ""},
        Expectation{"wrong", Verdict::kIncorrectNumerical, "y[2,4]"},
        Expectation{"three_ulp", Verdict::kIncorrectNumerical, "1 of 15 elements over it"},
        Expectation{"nan", Verdict::kNonfinite, "y[2,4]: got nan"},
        Expectation{"behind", Verdict::kOutOfBoundsWrite, "0 bytes behind the end of y"},
        Expectation{"far_before", Verdict::kOutOfBoundsWrite, "300 bytes before y"},
        Expectation{"modifies_input", Verdict::kInputModified, "input x[0,0]"},
        Expectation{"modifies_scratch", Verdict::kOutOfBoundsWrite, "the workspace"},
        Expectation{"copies_guard", Verdict::kOutOfBoundsWrite, "0 bytes behind the end of y"},
        Expectation{"remembers_guard", Verdict::kOutOfBoundsWrite, "0 bytes behind the end of y"},
        Expectation{"reads_scratch", Verdict::kNondeterministic, "y[0,0]"},
        Expectation{"counts_calls", Verdict::kNondeterministic, "y[0,0]"},
        Expectation{"never_writes_last", Verdict::kUnwrittenOutput, "y[2,4]; 1 of 15"},
        Expectation{"does_nothing", Verdict::kUnwrittenOutput, "15 of 15"},
        Expectation{"refuses", Verdict::kRuntimeError, "x must be even"},
        Expectation{"cannot", Verdict::kUnsupported, "needs wings"},
        Expectation{"crashes", Verdict::kCrashed, "signal 11"},
        Expectation{"aborts_with_words", Verdict::kCrashed, "assertion failed: wings"},
        Expectation{"exits_well", Verdict::kCrashed, "exited with code 0"},
        Expectation{"throws", Verdict::kRuntimeError, "thrown"},
        Expectation{"takes_all_memory", Verdict::kOom, "memory"},
        Expectation{"hangs", Verdict::kTimeout, "1.5 s"},
        Expectation{"sleeps_with_child", Verdict::kTimeout, "killed"},
        Expectation{"prints", Verdict::kPassed, ""}),
    [](const auto& info) { return std::string(info.param.implementation); });

TEST(Faults, a_run_of_all_of_them_ends_with_a_verdict_for_each_case_in_order) {
  CheckRequest request;
  request.timeout_s = 0.5;
  request.tier = Tier::kTiny;
  request.dtypes = {DType::kBF16};
  request.filter = "N=1,M=5,inputs=normal,seed=42$";
  CheckReport report;
  const auto results = results_of(request, &report);
  const auto cases = select_cases(request);
  ASSERT_EQ(results.size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(case_id(results[i].c), case_id(cases[i]));
  EXPECT_EQ(report.exit_code(), kExitIncorrect);
  EXPECT_EQ(report.tally.skipped(), 1);
}

TEST(Faults, what_lies_between_rows_is_guarded) {
  CheckReport report;
  CheckRequest request;
  request.cases = {parse_case("faulty/forward/writes_between_rows/bf16/N=3,M=5,gap=3"),
                   parse_case("faulty/forward/writes_between_rows/bf16/N=3,M=5")};
  const auto results = results_of(request, &report);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].verdict, Verdict::kOutOfBoundsWrite);
  EXPECT_NE(results[0].reason.find("between the rows of y, behind row 0"), std::string::npos)
      << results[0].reason;
  EXPECT_EQ(results[1].verdict, Verdict::kPassed);
}

TEST(Faults, every_output_is_judged) {
  CheckReport report;
  CheckRequest request;
  request.cases = {parse_case("relations/weigh/adds_a_little/f32/T=3,V=6"),    // y, the first
                   parse_case("relations/weigh/stretches_max/f32/T=3,V=6"),    // m
                   parse_case("relations/weigh/sums_in_elem/bf16/T=3,V=60")};  // s, the last
  const auto results = results_of(request, &report);
  ASSERT_EQ(results.size(), 3u);
  const char* const kWrong[] = {"y[", "m[", "s["};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(results[i].verdict, Verdict::kIncorrectNumerical);
    EXPECT_EQ(results[i].reason.rfind(kWrong[i], 0), 0u) << results[i].reason;
    EXPECT_EQ(results[i].outputs.size(), 3u);
  }
}

TEST(Faults, a_hang_costs_one_case_and_its_group_goes_on) {
  CheckRequest request;
  request.implementations = {"hangs_on_large"};
  request.dtypes = {DType::kF32};
  request.filter = "-prop=";
  request.timeout_s = 0.5;
  request.jobs = 1;
  CheckReport report;
  const auto results = results_of(request, &report);
  int hung = 0;
  for (const CheckResult& r : results) {
    const bool large = r.c.axes.at("N") == 40;
    hung += large;
    EXPECT_EQ(r.verdict, large ? Verdict::kTimeout : Verdict::kPassed) << case_id(r.c);
  }
  EXPECT_GE(hung, 1);
  EXPECT_EQ(report.tally.failed(), hung);
  EXPECT_EQ(report.exit_code(), kExitInfrastructure);
}

TEST(Faults, every_case_of_a_right_implementation_passes) {
  CheckRequest request;
  request.implementations = {"right"};
  CheckReport report;
  const auto results = results_of(request, &report);
  EXPECT_GT(results.size(), 20u);
  for (const CheckResult& r : results)
    EXPECT_EQ(r.verdict, r.c.property.find("stream") == std::string::npos ? Verdict::kPassed
                                                                          : Verdict::kUnsupported)
        << case_id(r.c) << ": " << r.reason;
  EXPECT_EQ(report.exit_code(), kExitOk);
}

TEST(Faults, a_repro_is_the_same_case) {
  CheckReport report;
  CheckRequest request = request_for("wrong");
  const auto first = results_of(request, &report);
  request = {};
  request.cases = {parse_case(case_id(first.at(0).c))};
  const auto again = results_of(request, &report);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].reason, first[0].reason);
}

TEST(Faults, nothing_selected_is_not_a_success) {
  CheckRequest request;
  request.filter = "no such case";
  CheckReport report;
  EXPECT_TRUE(results_of(request, &report).empty());
  EXPECT_EQ(report.exit_code(), kExitNothing);
}

}  // namespace
}  // namespace tigon
