// SPDX-License-Identifier: Apache-2.0
// Names and exit codes of verdicts.
#include "harness/judge/verdict.h"

#include <fmt/format.h>

#include "harness/judge/judge_fault.h"

namespace tigon {

namespace {

struct Entry {
  Verdict verdict;
  const char* name;
  ExitCode code;
};

constexpr Entry kEntries[] = {
    {Verdict::kPassed, "passed", kExitOk},
    {Verdict::kIncorrectNumerical, "incorrect_numerical", kExitIncorrect},
    {Verdict::kNonfinite, "nonfinite", kExitIncorrect},
    {Verdict::kNondeterministic, "nondeterministic", kExitIncorrect},
    {Verdict::kOutOfBoundsWrite, "out_of_bounds_write", kExitIncorrect},
    {Verdict::kUnwrittenOutput, "unwritten_output", kExitIncorrect},
    {Verdict::kInputModified, "input_modified", kExitIncorrect},
    {Verdict::kRuntimeError, "runtime_error", kExitIncorrect},
    {Verdict::kTimeout, "timeout", kExitInfrastructure},
    {Verdict::kCrashed, "crashed", kExitInfrastructure},
    {Verdict::kOom, "oom", kExitInfrastructure},
    {Verdict::kUnsupported, "unsupported", kExitOk},
    {Verdict::kSkipped, "skipped", kExitOk},
    {Verdict::kNotRun, "not_run", kExitOk},
};

}  // namespace

const char* name_of(Verdict verdict) {
  for (const Entry& e : kEntries)
    if (e.verdict == verdict) return e.name;
  return "?";
}

std::optional<Verdict> parse_verdict(std::string_view name) {
  for (const Entry& e : kEntries)
    if (name == e.name) return e.verdict;
  return std::nullopt;
}

ExitCode exit_code_of(Verdict verdict) {
  for (const Entry& e : kEntries)
    if (e.verdict == verdict) return e.code;
  return kExitInfrastructure;
}

void Tally::add(Verdict verdict) {
  if (verdict == Verdict::kPassed || (planted(JudgeFault::kSkipIsPass) && is_skip(verdict))) {
    ++passed_;
  } else if (is_skip(verdict)) {
    ++skipped_;
  } else {
    ++failed_;
    const ExitCode code = exit_code_of(verdict);
    if (worst_ == kExitOk || code < worst_) worst_ = code;
  }
}

ExitCode Tally::exit_code() const {
  if (planted(JudgeFault::kExitsWell)) return passed_ > 0 ? kExitOk : kExitNothing;
  if (failed_ > 0) return worst_;
  return passed_ > 0 || planted(JudgeFault::kNothingIsGreen) ? kExitOk : kExitNothing;
}

std::string Tally::line() const {
  return fmt::format("{} passed, {} failed, {} skipped", passed_, failed_, skipped_);
}

}  // namespace tigon
