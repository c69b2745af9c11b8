// SPDX-License-Identifier: Apache-2.0
// Plants the faults of judge_fault.h one after the other and expects the judge's own tests, which
// are linked with it, to notice. Prints one JSON line per fault:
//   {"group": "comparator", "name": ..., "what": ..., "caught": true, "by": [tests that failed]}
// Exit code 0: every fault is caught and, without a fault, every test passes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "harness/json/json.h"
#include "harness/judge/judge_fault.h"
#include "harness/judge/verdict.h"

namespace tigon {
namespace {

struct Fault {
  JudgeFault fault;
  const char* name;
  const char* what;
};

constexpr Fault kFaults[] = {
    {JudgeFault::kAcceptsNan, "accepts_nan", "a NaN in the output passes"},
    {JudgeFault::kFirstElements, "first_elements", "only the first 1024 elements are compared"},
    {JudgeFault::kLastVerdict, "last_verdict", "the verdict of the last output counts alone"},
    {JudgeFault::kRelativeToCandidate, "relative_to_candidate",
     "the budget is relative to the output that is judged"},
    {JudgeFault::kSwappedTerms, "swapped_terms",
     "the terms of roundings and of sums have changed places"},
    {JudgeFault::kSkipIsPass, "skip_is_pass", "a skipped case counts as passed"},
    {JudgeFault::kWrongWidth, "wrong_width", "f32 elements are read as 16 bits"},
    {JudgeFault::kExitsWell, "exits_well", "exit code 0 although a case failed"},
    {JudgeFault::kAnySignOfInfinity, "any_sign_of_infinity", "-inf passes for +inf"},
    {JudgeFault::kSkipsNonfiniteOracle, "skips_nonfinite_oracle",
     "anything passes where the oracle is NaN or infinite"},
    {JudgeFault::kInfinityForFinite, "infinity_for_finite", "an infinity passes for any number"},
    {JudgeFault::kNanBudgetAllows, "nan_budget_allows", "a budget that is NaN allows everything"},
    {JudgeFault::kAnySize, "any_size", "missing elements are not noticed"},
    {JudgeFault::kNoRootMeanSquare, "no_root_mean_square",
     "the root mean square of the errors is not judged"},
    {JudgeFault::kNoBias, "no_bias", "errors may all be in one direction"},
    {JudgeFault::kTiesOneWay, "ties_one_way",
     "a value next to a tie must be rounded as the oracle's"},
    {JudgeFault::kUnevenTies, "uneven_ties", "what ties excuse is allowed once more"},
    {JudgeFault::kAbsoluteTolerance, "absolute_tolerance",
     "1e-3 is allowed however small the values are"},
    {JudgeFault::kNothingIsGreen, "nothing_is_green", "exit code 0 when nothing ran"},
};

// Names of the failed tests, one a line, to the parent.
class ReportFailures : public testing::EmptyTestEventListener {
 public:
  explicit ReportFailures(int descriptor) : descriptor_(descriptor) {}
  void OnTestEnd(const testing::TestInfo& test) override {
    if (test.result()->Failed())
      dprintf(descriptor_, "%s.%s\n", test.test_suite_name(), test.name());
  }

 private:
  int descriptor_;
};

// The tests that fail with this fault; `broken` is set when the process did not end by itself.
std::vector<std::string> failures_with(JudgeFault fault, bool* broken) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::fflush(stdout);  // else the child prints it again
  const pid_t child = fork();
  if (child == 0) {
    planted_judge_fault = fault;
    dup2(STDERR_FILENO, STDOUT_FILENO);  // the lines of JSON stay alone
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    if (fault != JudgeFault::kNone) delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new ReportFailures(ends[1]));
    const int code = RUN_ALL_TESTS();
    std::fflush(stdout);
    _exit(code);
  }
  close(ends[1]);
  std::string text;
  char bytes[4096];
  for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  *broken = !WIFEXITED(status);
  std::vector<std::string> names;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    names.push_back(text.substr(begin, end - begin));
  return names;
}

int plant_all() {
  bool broken = false;
  if (!failures_with(JudgeFault::kNone, &broken).empty() || broken) {
    std::fprintf(stderr, "the judge's tests fail without a fault\n");
    return kExitIncorrect;
  }
  int missed = 0;
  for (const Fault& f : kFaults) {
    const std::vector<std::string> by = failures_with(f.fault, &broken);
    const bool caught = !by.empty() || broken;
    missed += !caught;
    const Json line = {{"group", "comparator"},
                       {"name", f.name},
                       {"what", f.what},
                       {"caught", caught},
                       {"by", by}};
    std::printf("%s\n", line.dump().c_str());
  }
  std::fprintf(stderr, "comparator: %zu of %zu faults caught\n",
               std::size(kFaults) - static_cast<size_t>(missed), std::size(kFaults));
  return missed == 0 ? kExitOk : kExitIncorrect;
}

}  // namespace
}  // namespace tigon

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return tigon::plant_all();
}
