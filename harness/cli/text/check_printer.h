// SPDX-License-Identifier: Apache-2.0
// What tigon check prints while it runs.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "harness/cli/options/case_pattern.h"
#include "harness/cli/text/terminal.h"
#include "harness/run/judging/diagnose.h"

namespace tigon::cli {

// Prints failures as they come and one line for each op, pass and implementation.
class CheckPrinter {
 public:
  // `mixed`: the cases come in turns, so there is no line for a group.
  CheckPrinter(Progress* progress, bool verbose, bool mixed)
      : progress_(progress), verbose_(verbose), mixed_(mixed) {}
  ~CheckPrinter() { end_group(); }
  CheckPrinter(const CheckPrinter&) = delete;
  CheckPrinter& operator=(const CheckPrinter&) = delete;

  // `diagnosis`: of a failure that was looked at again.
  void add(const CheckResult& r, const Diagnosis* diagnosis = nullptr);
  // Prints the line of the group so far; nothing when there is none.
  void end_group();

 private:
  void note(const CheckResult& r);
  void print(const CheckResult& r, const Diagnosis* diagnosis);
  std::string outcome() const;

  Progress* progress_;
  bool verbose_, mixed_;
  std::string group_;
  Tally tally_;
  std::vector<JudgedCase> cases_;     // of the group
  std::map<std::string, int> alike_;  // failures of the group by reason
  std::map<std::string, int> skips_;  // of the group by reason
  double worst_ = 0;
};

}  // namespace tigon::cli
