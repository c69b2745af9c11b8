// SPDX-License-Identifier: Apache-2.0
// The small cases of a pass that a visibility check goes over, and what it notes of them.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/run/judging/oracle.h"
#include "harness/tests/visibility.h"

namespace tigon {

// A problem and what the oracle says about it.
struct SolvedProblem {
  explicit SolvedProblem(const Case& c);
  Problem problem;
  std::map<std::string, Expected> expected;

  // Notes how far `other` is from an output, in budgets of the worst element, if no case before was
  // as far; `where` names the output or the case.
  void note_distance(const CaseTensor& output, const std::vector<double>& other,
                     const std::string& where, VisibilityCheck* check) const;
};

class VisibilityCases {
 public:
  using Visit = std::function<void(const Case&)>;

  VisibilityCases(const OpSpec& op, const Pass& pass, DType dtype)
      : op_(op), pass_(pass), dtype_(dtype) {}

  const OpSpec& op() const { return op_; }
  const Pass& pass() const { return pass_; }

  // A check that no case has passed yet.
  VisibilityCheck check_of(std::string what) const;
  // The options of a set that this pass has.
  OptionSet options_of_pass(const OptionSet& set) const;
  // Whether the case has this tensor: its options may leave it out.
  bool has(const Case& c, const std::string& tensor) const;

  // Visits every small case with these options until the check has passed.
  void with_options(const OptionSet& options, VisibilityCheck* check, const Visit& visit) const;
  // The same with every option set in turn, the default first: a reduced loss is one number, which
  // only another option makes several.
  void with_each_option_set(VisibilityCheck* check, const Visit& visit) const;
  // The case with what the oracle says, which is asked once for all checks.
  const SolvedProblem& solved(const Case& c) const;

 private:
  const OpSpec& op_;
  const Pass& pass_;
  DType dtype_;
  mutable std::map<std::string, SolvedProblem> solved_;  // by the case's id
};

}  // namespace tigon
