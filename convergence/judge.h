// SPDX-License-Identifier: Apache-2.0
// Decides whether two loss curves part by more than rounding explains.
#pragma once
#include <vector>

#include "convergence/converge.h"

namespace tigon::convergence {

// One naive run, one fused run and twins of both whose first weights differ by one unit in the last
// place; all of one dtype, seed and data.
struct Trial {
  const RunReport* naive;
  const RunReport* fused;
  std::vector<const RunReport*> twins;             // of the naive run
  std::vector<const RunReport*> fused_twins = {};  // bf16 only
};

// Steps of an f32 twin, and those that are judged by it.
inline constexpr int kF32TwinSteps = 20;
inline constexpr int kF32Twins = 1;
inline constexpr int kBF16Twins = 5;
inline constexpr int kBF16FusedTwins = 2;

// Two one-sided tests: a difference of this share of the naive loss is ruled out with this
// confidence.
inline constexpr double kMargin = 0.02;
inline constexpr double kConfidence = 0.95;

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
// bf16: curves diverge chaotically, so the twins say how far.
//   Spread: the root mean square of the difference over ten steps (the first ten for all of them)
//   may be 3 times that of all pairs of naive runs over the same steps, and so may that of the
//   held-out losses.
//   Equivalence: the mean loss of the last quarter of the steps, and the held-out loss, of the
//   fused runs against that of the naive runs, in two one-sided tests each. The
//   spread of the runs themselves decides how small a difference that can show.
//
// Verdict "nonfinite" when any loss is, "not_run" when a run ended early.
VerdictReport judge(const Trial& trial);

}  // namespace tigon::convergence
