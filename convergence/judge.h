// SPDX-License-Identifier: Apache-2.0
// Decides whether loss curves part by more than rounding explains.
#pragma once
#include <vector>

#include "convergence/converge.h"

namespace tigon::convergence {

// Runs from the same weights on the same batches at the same rate.
struct Pair {
  const RunReport *naive, *fused;
};

// All of one config and dtype; the pairs differ in their seed.
struct Trial {
  std::vector<Pair> pairs;
  // f32: the naive run of the first pair from weights that differ by one unit in the last place.
  const RunReport* twin = nullptr;
};

// Steps of an f32 twin, and those that are judged by it.
inline constexpr int kF32TwinSteps = 20;
inline constexpr int kF32Pairs = 1;
inline constexpr int kBF16Pairs = 5;

// No pair may differ by more than this share of its naive loss, and the mean of all does not with
// this confidence.
inline constexpr double kMargin = 0.005;
inline constexpr double kConfidence = 0.95;

// The first step, from 0, whose loss is a tenth above the lowest before it while its gradient is
// three times as long as the median before; -1: there is none. (A batch of harder text has no
// longer gradient.) After a spike a difference of two curves says nothing: the pair is run again at
// half the rate, at most kMostHalvings times.
int first_spike(const RunReport& run);
inline constexpr int kMostHalvings = 3;

// f32: step by step. With lambda = 4, the loss of each of the first 20 steps may differ by
//     e_t + lambda sqrt(sum_{s <= t} d_s^2),   e_t = lambda u (sqrt(V) + sqrt(N) loss_t)
//   e_t is the rounding of one evaluation: a sum of V exponentials per token, whose logarithm turns
//   its relative error into an absolute one, and the sum over N tokens (both as random walks,
//   Higham and Mary 2019). d_s is how far the twin is from the naive run s steps after it was moved
//   by one unit everywhere: every step rounds again, what step r rounded shows d_{t - r} at step t,
//   and independent errors add as squares. d_s is at least the resolution 2 u loss of the loss.
//   Later, spikes of the loss amplify single roundings, so later steps and the held-out loss may
//   differ by 0.02 nats, less than bf16 costs.
//
// bf16: every pair, and all of them together.
//   Each pair: the root mean square of the difference over ten steps (the first ten for all of
//   them), the difference of the mean loss of the last quarter, and that of the held-out losses,
//   lie within the margin. What is recorded by step is of the pair that takes the largest share.
//   All: the last quarter and the held-out loss in two one-sided tests each, over the differences
//   of the pairs. Their spread decides how small a shift that can notice.
//
// Verdict "nonfinite" when any loss is, "not_run" when a run ended early, "runtime_error" when a
// naive run still spikes at the lowest rate: there is no evidence.
VerdictReport judge(const Trial& trial);

}  // namespace tigon::convergence
