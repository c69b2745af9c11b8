// SPDX-License-Identifier: Apache-2.0
// One comparison: the naive run, the fused run, the twins, the verdict. converge() calls it with
// the ops that ship, tests with planted faults.
#pragma once
#include <atomic>

#include "convergence/converge.h"
#include "convergence/ops.h"
#include "convergence/text_data.h"

namespace tigon::convergence {

struct Comparison {
  const ModelConfig& config;
  const TokenData& data;
  std::string source;  // of the text
  uint64_t seed = 1;
  const ConvergeObserver& observer;
  const std::atomic<bool>* stop = nullptr;
  // As in ConvergeRequest.
  std::filesystem::path checkpoints = {};
  int checkpoint_every = 0;
  std::vector<RunReport> finished = {};
};

// Adds the runs and, unless it was stopped, the verdict to `result`. Throws ConvergeError(5).
template <class P>
void compare(const Comparison& comparison, const Ops<P>& naive, const Ops<P>& fused,
             ConvergeResult& result);

}  // namespace tigon::convergence
