// SPDX-License-Identifier: Apache-2.0
// What each case does without a fault: its verdict, how long it takes and whose places it passes. A
// fault changes no case that does not pass its place, so sampled ones meet those alone that do.
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "harness/mutants/fault_cases.h"
#include "harness/mutants/score.h"

namespace tigon {

struct SurveyedCase {
  CheckResult result;
  double seconds = 0;             // of the whole case
  std::vector<uint32_t> reached;  // FaultId, sorted
  bool is_first = false;          // of its process: what is made once is made here
};

class Survey {
 public:
  // Both outlive this.
  Survey(const MutantRequest& request, FaultCases* cases) : request_(request), cases_(cases) {}

  // Runs all cases that sampled faults among `results` may meet and that it has not run, in `jobs`
  // processes at a time.
  // Without kernels of this program, or on a GPU, there is nothing to learn.
  void run(const std::vector<MutantResult>& results, int jobs);

  // nullptr where a case was not surveyed.
  const SurveyedCase* find(const std::string& executor, const Case& c) const;

  // Of these cases those that pass the fault's place, one of each kind first, the fastest before
  // the others. All, where they were not surveyed or pass it only when a process begins.
  std::vector<Case> reaching(const std::string& fault, const std::string& executor,
                             std::vector<Case> cases) const;

 private:
  struct Asked {
    std::string executor;
    Case c;
  };
  std::vector<Asked> cases_of(const std::vector<MutantResult>& results);
  std::vector<Case> one_of_each_first(const std::string& executor, std::vector<Case> cases) const;
  void work(const std::vector<Asked>& asked, size_t* next);

  const MutantRequest& request_;
  FaultCases* cases_;
  std::mutex mutex_;
  std::set<std::string> surveyed_;             // executors and ops
  std::map<std::string, SurveyedCase> known_;  // by executor and case
  size_t done_ = 0;
};

}  // namespace tigon
