// SPDX-License-Identifier: Apache-2.0
// The cases that a planted fault meets, and in which order.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "harness/mutants/score.h"
#include "harness/run/check.h"

namespace tigon {

// Whose kernels have the fault; of libraries those with an op of this dtype.
std::vector<std::string> implementations_of(const MutantResult& r, const MutantRequest& request);

// A sampled fault is tried in all passes and dtypes of its op.
bool is_sampled(const MutantResult& r);

// One plan for all faults of an executor, because on a GPU each takes a process of its own; where
// kernels come from libraries, which need not have all, one for each pass and dtype. Thread-safe.
class FaultCases {
 public:
  // Of faults in these ops. The request outlives this.
  FaultCases(const MutantRequest& request, std::vector<std::string> ops)
      : request_(request), ops_(std::move(ops)) {}

  // In the order in which they are tried: where the fault's hint says that it shows, then by size.
  std::vector<Case> of(const MutantResult& r, Tier tier);

 private:
  struct Planned {
    std::once_flag once;
    std::vector<Case> cases;
  };

  const std::vector<Case>& planned(const CheckRequest& check, const std::string& key);

  const MutantRequest& request_;
  const std::vector<std::string> ops_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Planned>> plans_;
};

}  // namespace tigon
