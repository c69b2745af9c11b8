// SPDX-License-Identifier: Apache-2.0
// A child that holds kernels with planted faults.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "harness/mutants/score.h"
#include "harness/run/process/child.h"

namespace tigon {

// The program with the mutated kernels. Throws UsageError when it is missing.
std::string program_for(const MutantRequest& request);

// Runs cases with a fault, or with none (""), in one process.
class FaultyChild {
 public:
  FaultyChild(const MutantRequest& request, const std::string& executor, const std::string& fault);

  CheckResult run(const Case& c, const std::string& fault);
  // Faults whose places the last case has passed, where it ran without one: FaultId.
  const std::vector<uint32_t>& reached() const { return reached_; }
  // The next case starts another process.
  void stop() { child_.stop(); }

 private:
  Child child_;
  double timeout_s_;
  std::vector<uint32_t> reached_;
};

}  // namespace tigon
