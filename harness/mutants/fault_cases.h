// SPDX-License-Identifier: Apache-2.0
// The cases that a planted fault meets, and in which order.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "harness/mutants/score.h"
#include "harness/run/check.h"

namespace tigon {

// Whose kernels have the fault; of libraries those with an op of this dtype.
std::vector<std::string> implementations_of(const MutantResult& r, const MutantRequest& request);

// A sampled fault is tried in all passes and dtypes of its op.
bool is_sampled(const MutantResult& r);

// Faults of one pass and dtype meet the same plan, which is made once: on a GPU that takes a
// process of its own. Thread-safe.
class FaultCases {
 public:
  // The request outlives this.
  explicit FaultCases(const MutantRequest& request) : request_(request) {}

  // In the order in which they are tried: where the fault's hint says that it shows, then by size.
  std::vector<Case> of(const MutantResult& r, Tier tier);

 private:
  struct Planned {
    std::once_flag once;
    std::vector<Case> cases;
  };

  const std::vector<Case>& planned(const CheckRequest& check, const std::string& key);

  const MutantRequest& request_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Planned>> plans_;
};

}  // namespace tigon
