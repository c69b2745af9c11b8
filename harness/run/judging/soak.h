// SPDX-License-Identifier: Apache-2.0
// Soak: many random cases of kernels that are known to be right. Every failure is a false alarm of
// the judge, or a fault that the fixed cases miss.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "harness/run/check.h"

namespace tigon {

struct SoakResult {
  std::string op, executor;
  DType dtype = DType::kF32;
  int trials = 0, skipped = 0;
  uint64_t first_seed = 0;
  std::vector<CheckResult> alarms;
  double seconds = 0;
};
// As in harness/record/record.schema.json, KIND soak.
Json to_json(const SoakResult& result);

// Verdicts of the same cases in several runs.
class VerdictDiff {
 public:
  // The first verdict of a case is what later ones are compared with.
  void add(const CheckResult& result);
  size_t cases() const { return first_.size(); }
  // "case id: passed, then nondeterministic", in the order found.
  const std::vector<std::string>& differing() const { return differing_; }

 private:
  std::map<std::string, Verdict> first_;  // by executor and case id
  std::vector<std::string> differing_;
};

}  // namespace tigon
