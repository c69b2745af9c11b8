// SPDX-License-Identifier: Apache-2.0
// Training by Adam (Kingma and Ba 2015) with truncated back-propagation through time. Lanes are
// dealt to a fixed number of shards, so results do not depend on the number of threads.
#include "convergence/next_action/lstm.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "convergence/next_action/head.h"
#include "convergence/next_action/lstm_loop.h"
#include "convergence/next_action/lstm_window.h"
#include "convergence/threads.h"

namespace tigon::convergence::next_action {
namespace {

constexpr int64_t kBlock = 1 << 14;  // parameters updated at a time

}  // namespace

struct Lstm::State {
  LstmSettings settings;
  LstmLayout layout;
  std::vector<LstmShard> shards;
  Floats weights, m, v;
  std::vector<Floats> gradients;  // of each shard
  int64_t updates = 0;

  State(int32_t vocabulary, const LstmSettings& s)
      : settings(s), layout(vocabulary, s), weights(first_weights(layout, s.seed)) {
    for (int i = 0; i < s.shards; ++i) shards.emplace_back(layout, s.lanes / s.shards, s.window);
    m.assign(weights.size(), 0.0f);
    v = m;
    gradients.assign(shards.size(), m);
  }

  // The shard's part of the window that begins at `step`.
  std::vector<LaneStep> part(const Lanes& lanes, int64_t step, int shard) const {
    const int own = settings.lanes / settings.shards;
    std::vector<LaneStep> steps;
    for (int t = 0; t < settings.window; ++t)
      for (int lane = 0; lane < own; ++lane)
        steps.push_back(lanes.at(shard * own + lane, step + t));
    return steps;
  }

  // Sum of losses; gradients[0] becomes the gradient of their mean.
  double window(const Lanes& lanes, int64_t step, int64_t count) {
    std::vector<double> loss(shards.size());
    parallel_for(settings.shards, [&](int i) {
      const auto at = static_cast<size_t>(i);
      const std::vector<LaneStep> steps = part(lanes, step, i);
      std::ranges::fill(gradients[at], 0.0f);
      shards[at].forward(weights.data(), steps);
      loss[at] = shards[at].backward(weights.data(), steps, 1.0f / static_cast<float>(count),
                                     gradients[at]);
    });
    return std::accumulate(loss.begin(), loss.end(), 0.0);
  }

  template <class F>
  void for_each_block(F&& f) {
    parallel_for(static_cast<int>((layout.total + kBlock - 1) / kBlock), [&](int block) {
      f(block, block * kBlock, std::min(layout.total, (block + 1) * kBlock));
    });
  }

  // Into gradients[0]; returns its square.
  double sum_gradients() {
    std::vector<double> square(static_cast<size_t>(layout.total / kBlock + 1), 0.0);
    for_each_block([&](int block, int64_t first, int64_t last) {
      float* const sum = gradients[0].data();
      double s = 0;
      for (size_t shard = 1; shard < shards.size(); ++shard)
        for (int64_t i = first; i < last; ++i) sum[i] += gradients[shard][static_cast<size_t>(i)];
      for (int64_t i = first; i < last; ++i)
        s += static_cast<double>(sum[i]) * static_cast<double>(sum[i]);
      square[static_cast<size_t>(block)] = s;
    });
    return std::accumulate(square.begin(), square.end(), 0.0);
  }

  void update(double rate) {
    using namespace lstm_adam;
    const double norm = std::sqrt(sum_gradients());
    const auto shrink = static_cast<float>(std::min(1.0, settings.clip / norm));
    ++updates;
    const auto t = static_cast<double>(updates);
    const auto step = static_cast<float>(rate / (1.0 - std::pow(kBeta1, t)));
    const auto unbias = static_cast<float>(1.0 / (1.0 - std::pow(kBeta2, t)));
    for_each_block([&](int, int64_t first, int64_t last) {
      const float* const g = gradients[0].data();
      float *const w = weights.data(), *const m1 = m.data(), *const m2 = v.data();
      for (int64_t i = first; i < last; ++i) {
        const float x = g[i] * shrink;
        m1[i] = kBeta1 * m1[i] + (1 - kBeta1) * x;
        m2[i] = kBeta2 * m2[i] + (1 - kBeta2) * x * x;
        const bool dense = i >= layout.layers[0].input && i < layout.head;
        w[i] -= (dense ? kDense * step : step) * m1[i] / (std::sqrt(m2[i] * unbias) + kEps);
      }
    });
  }

  void forget() {
    for (LstmShard& shard : shards) shard.forget();
  }
};

Lstm::Lstm(int32_t vocabulary, const LstmSettings& settings)
    : state_(std::make_unique<State>(vocabulary, settings)) {}
Lstm::~Lstm() = default;

int64_t Lstm::parameters() const { return state_->layout.total; }
Floats& Lstm::weights() { return state_->weights; }

void Lstm::train(const std::vector<Sequence>& learners,
                 const std::function<bool(int, double)>& on_epoch) {
  State& s = *state_;
  const LstmSteps steps{
      [&] { s.forget(); },
      [&](const Lanes& lanes, int64_t step, int64_t count) { return s.window(lanes, step, count); },
      [&](double rate) { s.update(rate); }};
  train_by_windows(s.settings, learners, steps, on_epoch);
}

std::vector<Hits> Lstm::score(const std::vector<Sequence>& learners) {
  State& s = *state_;
  const Lanes lanes = lanes_in_order(learners, s.settings);
  const Head head{s.weights.data() + s.layout.head, s.weights.data() + s.layout.head_bias,
                  s.layout.vocabulary, s.layout.hidden};
  std::vector<Hits> hits(learners.size());
  s.forget();
  for (int64_t step = 0; step < lanes.length(); step += s.settings.window)
    for (int i = 0; i < s.settings.shards; ++i) {
      const std::vector<LaneStep> steps = s.part(lanes, step, i);
      LstmShard& shard = s.shards[static_cast<size_t>(i)];
      shard.forward(s.weights.data(), steps);
      std::vector<int32_t> targets;
      for (const LaneStep& at : steps) targets.push_back(at.target);
      const std::vector<int> rank = ranks(head, shard.top().data(), targets);
      for (size_t at = 0; at < steps.size(); ++at)
        if (targets[at] >= 0) hits[static_cast<size_t>(steps[at].learner)].add(rank[at]);
    }
  return hits;
}

double Lstm::gradient(const std::vector<Sequence>& learners, Floats& gradient) {
  State& s = *state_;
  const Lanes lanes = lanes_in_order(learners, s.settings);
  s.forget();
  const int64_t count = targets_in(lanes, s.settings, 0);
  const double loss = s.window(lanes, 0, count) / static_cast<double>(count);
  s.sum_gradients();
  gradient = s.gradients[0];
  return loss;
}

}  // namespace tigon::convergence::next_action
