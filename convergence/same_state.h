// SPDX-License-Identifier: Apache-2.0
// Gradients from the same state: at points of a training all parameters' gradients of the naive and
// of the fused side against a reference of higher precision. Nothing in it is chaotic, whatever the
// size of the model.
#pragma once
#include <string>
#include <vector>

#include "convergence/converge.h"
#include "convergence/ops.h"
#include "convergence/text_data.h"

namespace tigon::convergence {

// A naive training before one of its steps.
struct TrainingState {
  int step;                    // finished steps
  std::vector<float> weights;  // master weights in the order of ParameterLayout
};

// At the start, after warm-up and behind the last of so many steps; in that order, each once.
std::vector<int> state_steps(const ModelConfig& config, int steps);

// One state, the batches that come next, and the gradients of each that every fused side is
// compared with.
struct StateReference {
  int step;
  std::vector<float> weights;
  std::vector<Batch> batches;
  std::vector<std::vector<float>> naive;
  std::vector<std::vector<double>> reference;
};
inline constexpr int kStateBatches = 4;

// What the reference of a dtype is: "f32, naive, on the same device" of bf16, "double" of f32;
// empty when there is none, with `reason`.
std::string reference_of(const ModelConfig& config, DType dtype, std::string& reason);

// Of batches of the config's size; for a reference in double, of one sequence. Throws DeviceError
// when memory runs out.
template <class P>
StateReference reference_at(const ModelConfig& config, const TokenData& data, uint64_t seed,
                            const TrainingState& state);

// Adds one state's rows to the report, and judges them. A difference to the reference has a part
// along it, which scales the gradient, and a part across. Both are shares of the reference's norm.
// Over the batches, as root mean squares and as the mean b of what scales,
//     across_fused <= 1.1 across_naive + rho,      |b_fused| <= 1.1 along_naive + rho.
//   rho is what one more rounding of every element costs: in bf16 the unit roundoff u of the stored
//   gradient. In f32, where sums cost more than that, it is u sqrt(terms of the longest sum), as a
//   random walk (Higham and Mary 2019).
//   The two are judged apart because a state can be such that one early rounding scales most
//   gradients of a batch alike: that is one number a batch and has no norm over many, but its sign
//   changes from batch to batch, as that of an error of the formula does not.
template <class P>
void compare_state(const ModelConfig& config, const Ops<P>& fused, const StateReference& at,
                   StateReport& report);

}  // namespace tigon::convergence
