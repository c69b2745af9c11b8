// Training by Adam (Kingma and Ba 2015) with truncated back-propagation through time. Lanes are
// dealt to a fixed number of shards, so results do not depend on the number of threads.
#include "convergence/next_action/lstm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "convergence/next_action/head.h"
#include "convergence/next_action/lstm_window.h"
#include "convergence/text_data.h"
#include "convergence/threads.h"

namespace tigon::convergence::next_action {
namespace {

constexpr int64_t kBlock = 1 << 14;                 // parameters updated at a time
constexpr uint64_t kWeights = 4, kOrder = 1 << 10;  // streams of random bits

// Uniform within +-`most`.
void fill(Floats& w, int64_t at, int64_t count, float most, uint64_t seed) {
  for (int64_t i = at; i < at + count; ++i) {
    const auto bits = random_bits(seed, kWeights, static_cast<uint64_t>(i)) >> 40;
    w[static_cast<size_t>(i)] = most * (static_cast<float>(bits) / 8388608.0f - 1.0f);
  }
}

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

  int64_t targets(const Lanes& lanes, int64_t step) const {
    int64_t count = 0;
    for (int lane = 0; lane < settings.lanes; ++lane)
      for (int t = 0; t < settings.window; ++t) count += lanes.at(lane, step + t).target >= 0;
    return count;
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
    constexpr float kBeta1 = 0.9f, kBeta2 = 0.99f, kEps = 1e-8f;
    // Weights between units change at every step, rows of the tables when their resource occurs.
    constexpr float kDense = 0.2f;
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
  constexpr double kLowest = 0.05;
  for (int epoch = 0; epoch < s.settings.epochs; ++epoch) {
    const Lanes lanes(
        learners,
        random_order(learners.size(), s.settings.seed, kOrder + static_cast<uint64_t>(epoch)),
        s.settings.lanes);
    s.forget();
    double loss = 0;
    int64_t count = 0;
    for (int64_t step = 0; step < lanes.length(); step += s.settings.window) {
      const double done =
          (epoch + static_cast<double>(step) / static_cast<double>(lanes.length())) /
          s.settings.epochs;
      const int64_t targets = s.targets(lanes, step);
      loss += s.window(lanes, step, targets);
      count += targets;
      s.update(s.settings.rate *
               (kLowest + (1 - kLowest) * 0.5 * (1 + std::cos(std::numbers::pi * done))));
    }
    if (!on_epoch(epoch, loss / static_cast<double>(count))) return;
  }
}

std::vector<Hits> Lstm::score(const std::vector<Sequence>& learners) {
  State& s = *state_;
  std::vector<size_t> order(learners.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const Lanes lanes(learners, order, s.settings.lanes);
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
  std::vector<size_t> order(learners.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const Lanes lanes(learners, order, s.settings.lanes);
  s.forget();
  const int64_t count = s.targets(lanes, 0);
  const double loss = s.window(lanes, 0, count) / static_cast<double>(count);
  s.sum_gradients();
  gradient = s.gradients[0];
  return loss;
}

}  // namespace tigon::convergence::next_action
