// SPDX-License-Identifier: Apache-2.0
// What a judged case ended with, and the exit code of a run.
#pragma once
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tigon {

// Only kPassed is green. kUnsupported, kSkipped and kNotRun carry a reason and are never counted as
// passed.
enum class Verdict {
  kPassed,
  kIncorrectNumerical,
  kNonfinite,
  kNondeterministic,
  kOutOfBoundsWrite,
  kUnwrittenOutput,
  kInputModified,
  kRuntimeError,
  kTimeout,
  kCrashed,
  kOom,
  kUnsupported,
  kSkipped,
  kNotRun,
};

// The name in records, e.g. "out_of_bounds_write".
const char* name_of(Verdict verdict);
std::optional<Verdict> parse_verdict(std::string_view name);

inline bool is_skip(Verdict v) {
  return v == Verdict::kUnsupported || v == Verdict::kSkipped || v == Verdict::kNotRun;
}
inline bool is_failure(Verdict v) { return v != Verdict::kPassed && !is_skip(v); }

// 3, slower or larger than allowed, and 6, inconclusive, are those of commands in Python.
enum ExitCode : int {
  kExitOk = 0,
  kExitIncorrect = 1,       // a correctness failure
  kExitUsage = 2,           // a wrong command line or configuration
  kExitNothing = 4,         // nothing ran, or required data is missing
  kExitInfrastructure = 5,  // no device, out of memory, time-out, crash, disk full
  kExitInterrupted = 130,
};

// The exit code that one verdict stands for; kExitOk for passed, unsupported and skipped.
ExitCode exit_code_of(Verdict verdict);

// How many cases ended how, and the exit code of them all.
class Tally {
 public:
  void add(Verdict verdict);
  int passed() const { return passed_; }
  int failed() const { return failed_; }
  int skipped() const { return skipped_; }
  // The lowest code of the failures; kExitNothing when no case passed and none failed.
  ExitCode exit_code() const;
  // "3 passed, 1 failed, 0 skipped"
  std::string line() const;

 private:
  int passed_ = 0, failed_ = 0, skipped_ = 0;
  ExitCode worst_ = kExitOk;
};

// A mistake of the person who typed the command: one clear line, exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace tigon
