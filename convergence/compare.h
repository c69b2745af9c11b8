// SPDX-License-Identifier: Apache-2.0
// One comparison: pairs of a naive and a fused run, their verdict, both sides once more, and
// gradients of both from the same states. converge() calls it with the ops that ship, tests with
// planted faults.
#pragma once
#include <atomic>
#include <optional>

#include "convergence/converge.h"
#include "convergence/judge.h"
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
  std::vector<float> weights = {};  // the first ones; empty: from the seed
  std::filesystem::path exports = {};
  bool quick = false;  // gradients are compared at the last state only
};

// Steps of the trainings of one dtype that are shown and not finished.
int steps_to_train(const ModelConfig& config, DType dtype, const std::vector<RunReport>& finished);

// Adds the runs of all pairs and, unless it was stopped, their verdict to `result`; gives the first
// pair, which lies there. Throws ConvergeError(5).
template <class P>
std::optional<Pair> compare_curves(const Comparison& comparison, const Ops<P>& naive,
                                   const Ops<P>& fused, ConvergeResult& result);

// That, both sides of the first pair again, and the gradients. Adds the runs and, unless it was
// stopped, the verdicts to `result`. Throws ConvergeError(5).
template <class P>
void compare(const Comparison& comparison, const Ops<P>& naive, const Ops<P>& fused,
             ConvergeResult& result);

}  // namespace tigon::convergence
