// Soak: many random cases of kernels that are known to be right. Every failure is a false alarm of
// the judge, or a fault that the fixed cases miss.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "harness/run/check.h"

namespace tigon {

struct SoakRequest {
  std::string op;
  DType dtype = DType::kF32;
  CheckRequest choice;  // passes, implementations (none: all but libraries) and sizes to draw from
  // Bound of the product of all axes; 0: 2^13 on the host, 2^22 on a GPU.
  int64_t most_elements = 0;
};

// One case per seed in [first, first + count), each with a random pass, shape, option set, input
// set, address shift and row gap of the contract; cases of one pass and implementation together.
// The same request gives the same cases everywhere. Throws UsageError.
std::vector<Case> soak_cases(const SoakRequest& request, uint64_t first, int count);

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
