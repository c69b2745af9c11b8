// SPDX-License-Identifier: Apache-2.0
// What a CPU's and a GPU's LSTM have in common: first weights, lanes, epochs and rates.
#pragma once
#include <functional>
#include <vector>

#include "convergence/next_action/lanes.h"
#include "convergence/next_action/lstm.h"
#include "convergence/next_action/lstm_window.h"

namespace tigon::convergence::next_action {

// Adam's constants. Weights between units change at every step, rows of the tables when their
// resource occurs: the former's rate is a part of the latter's.
namespace lstm_adam {
inline constexpr float kBeta1 = 0.9f, kBeta2 = 0.99f, kEps = 1e-8f, kDense = 0.2f;
}

Floats first_weights(const LstmLayout& layout, uint64_t seed);

// Learners as they come, for scores.
Lanes lanes_in_order(const std::vector<Sequence>& learners, const LstmSettings& settings);

// Steps with a target in the window that begins at `step`.
int64_t targets_in(const Lanes& lanes, const LstmSettings& settings, int64_t step);

struct LstmSteps {
  std::function<void()> forget;
  // The sum of a window's losses; the gradient of their mean over `targets` stays.
  std::function<double(const Lanes& lanes, int64_t step, int64_t targets)> window;
  std::function<void(double rate)> update;
};

// As LstmPredictor::train().
void train_by_windows(const LstmSettings& settings, const std::vector<Sequence>& learners,
                      const LstmSteps& steps, const std::function<bool(int, double)>& on_epoch);

}  // namespace tigon::convergence::next_action
