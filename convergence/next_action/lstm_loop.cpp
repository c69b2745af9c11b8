// SPDX-License-Identifier: Apache-2.0
// Epochs of windows over lanes in a random order.
#include "convergence/next_action/lstm_loop.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "convergence/text_data.h"

namespace tigon::convergence::next_action {
namespace {

constexpr uint64_t kWeights = 4, kOrder = 1 << 10;  // streams of random bits

// Uniform within +-`most`.
void fill(Floats& w, int64_t at, int64_t count, float most, uint64_t seed) {
  for (int64_t i = at; i < at + count; ++i) {
    const auto bits = random_bits(seed, kWeights, static_cast<uint64_t>(i)) >> 40;
    w[static_cast<size_t>(i)] = most * (static_cast<float>(bits) / 8388608.0f - 1.0f);
  }
}

}  // namespace

Floats first_weights(const LstmLayout& layout, uint64_t seed) {
  Floats w(static_cast<size_t>(layout.total), 0.0f);
  const int64_t h = layout.hidden;
  fill(w, layout.embedding, layout.vocabulary * layout.embedding_width, 0.2f, seed);
  for (const LstmLayout::Layer& layer : layout.layers) {
    const float most = std::sqrt(3.0f / static_cast<float>(layer.inputs + h));
    fill(w, layer.input, (layer.inputs + h) * 4 * h, most, seed);
    // Remembers at first, some units for long: gates of 0.73 to 0.98.
    for (int64_t j = 0; j < h; ++j)
      w[static_cast<size_t>(layer.bias + h + j)] =
          1.0f + 3.0f * static_cast<float>(j) / static_cast<float>(h);
  }
  fill(w, layout.head, layout.vocabulary * h, 1.0f / std::sqrt(static_cast<float>(h)), seed);
  return w;
}

Lanes lanes_in_order(const std::vector<Sequence>& learners, const LstmSettings& s) {
  std::vector<size_t> order(learners.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return Lanes(learners, order, s.lanes, s.align);
}

int64_t targets_in(const Lanes& lanes, const LstmSettings& s, int64_t step) {
  int64_t count = 0;
  for (int lane = 0; lane < s.lanes; ++lane)
    for (int t = 0; t < s.window; ++t) count += lanes.at(lane, step + t).target >= 0;
  return count;
}

void train_by_windows(const LstmSettings& s, const std::vector<Sequence>& learners,
                      const LstmSteps& steps, const std::function<bool(int, double)>& on_epoch) {
  constexpr double kLowest = 0.05;
  for (int epoch = 0; epoch < s.epochs; ++epoch) {
    const Lanes lanes(learners,
                      random_order(learners.size(), s.seed, kOrder + static_cast<uint64_t>(epoch)),
                      s.lanes, s.align);
    steps.forget();
    double loss = 0;
    int64_t count = 0;
    for (int64_t step = 0; step < lanes.length(); step += s.window) {
      const double done =
          (epoch + static_cast<double>(step) / static_cast<double>(lanes.length())) / s.epochs;
      const int64_t targets = targets_in(lanes, s, step);
      loss += steps.window(lanes, step, targets);
      count += targets;
      steps.update(s.rate *
                   (kLowest + (1 - kLowest) * 0.5 * (1 + std::cos(std::numbers::pi * done))));
    }
    if (!on_epoch(epoch, loss / static_cast<double>(count))) return;
  }
}

}  // namespace tigon::convergence::next_action
