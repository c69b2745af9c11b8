// SPDX-License-Identifier: Apache-2.0
// One training run: weights from a seed, warm-up and cosine, held-out loss, time and memory.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "convergence/converge.h"
#include "convergence/model.h"

namespace tigon::convergence {

// Normal with deviation 0.02; projections into the residual stream 1/sqrt(2 layers) of that; norms'
// factors 1, biases and the residual matrices of Medusa heads 0. Sums of four uniform numbers
// instead of libm's functions, so the bits are the same on every machine. In the order of
// ParameterLayout.
std::vector<float> initial_weights(const ModelConfig& config, uint64_t seed);

// Rounds every weight to `type` and moves it by one unit in the last place, up or down as
// seed and twin say.
void add_noise(std::vector<float>& weights, DType type, uint64_t seed, int twin);

// Learning rate of a step of `steps`.
double learning_rate(const ModelConfig& config, int64_t step, int64_t steps);

struct TrainSettings {
  Side side = Side::kNaive;
  int twin = 0;  // of the report, and which of the noise side's first weights
  uint64_t seed = 1;
  int steps = 0;    // to run
  int horizon = 0;  // steps that the learning rate is spread over
  // The first weights; null or empty: initial_weights() of the seed.
  const std::vector<float>* weights = nullptr;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const StepReport&)> on_step;
  // Called with the master weights when so many steps are finished.
  std::vector<int> states = {};
  std::function<void(int step, std::vector<float> weights)> on_state = {};
  // A training that ends early leaves its state in this file, and goes on from it when it is there;
  // empty: neither.
  std::filesystem::path checkpoint;
  int checkpoint_every = 0;  // steps; 0: only when it ends early, and a whole training leaves none
};

// Trains config on the data. Ends early, with what was finished, when `stop` is set. Going on from
// a checkpoint gives the bits of a training that never stopped; times and memory are of the part
// that was run here. Throws ConvergeError: 2 for a wrong checkpoint, 5 when memory or the disk runs
// out or a launch fails.
template <class P>
RunReport train(const ModelConfig& config, const Ops<P>& ops, const TokenData& data,
                const TrainSettings& settings);

}  // namespace tigon::convergence
