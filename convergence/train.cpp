// SPDX-License-Identifier: Apache-2.0
// The training loop and everything around it.
#include "convergence/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "convergence/statistics.h"
#include "convergence/threads.h"

namespace tigon::convergence {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Sum of four uniform 16-bit numbers: mean 0, variance 1, bell-shaped within 3.5 deviations.
float bell(uint64_t bits) {
  const double sum = static_cast<double>(bits & 0xffff) + static_cast<double>(bits >> 16 & 0xffff) +
                     static_cast<double>(bits >> 32 & 0xffff) + static_cast<double>(bits >> 48);
  const double centred = sum / 65536.0 - 2.0 + 2.0 / 65536.0;
  return static_cast<float>(centred * std::numbers::sqrt3);
}

double mean_of_last_tenth(const std::vector<double>& v) {
  if (v.empty()) return std::numeric_limits<double>::quiet_NaN();
  const size_t n = std::max<size_t>(1, v.size() / 10);
  return std::accumulate(v.end() - static_cast<std::ptrdiff_t>(n), v.end(), 0.0) /
         static_cast<double>(n);
}

bool asked_to_stop(const TrainSettings& s) {
  return s.stop != nullptr && s.stop->load(std::memory_order_relaxed);
}

template <class P>
double held_out_loss(Model<P>& model, const ModelConfig& config, const TokenData& data) {
  double sum = 0;
  for (int i = 0; i < config.held_out_batches; ++i)
    sum += model.evaluate(data.held_out(i, config.held_out_batches, config.batch));
  return sum / config.held_out_batches;
}

}  // namespace

std::vector<float> initial_weights(const ModelConfig& config, uint64_t seed) {
  constexpr uint64_t kStream = 2;
  constexpr float kDeviation = 0.02f;
  const ParameterLayout layout(config);
  std::vector<float> w(static_cast<size_t>(layout.total), 0.0f);
  const float into_residual = kDeviation / std::sqrt(2.0f * static_cast<float>(config.layers));
  for (const Parameter& p : layout.parameters)
    parallel_for_each(p.offset, p.offset + p.size(), [&](int64_t i) {
      const auto normal = [&](float deviation) {
        return deviation * bell(random_bits(seed, kStream, static_cast<uint64_t>(i)));
      };
      float& value = w[static_cast<size_t>(i)];
      if (p.initial == Initial::kRandom) value = normal(kDeviation);
      if (p.initial == Initial::kRandomIntoResidual) value = normal(into_residual);
      if (p.initial == Initial::kNormWeight) value = 1.0f - config.norm_offset;
    });
  return w;
}

void add_noise(std::vector<float>& weights, DType type, uint64_t seed, int twin) {
  constexpr uint64_t kFirstStream = 16;
  const bool low = type == DType::kBF16;
  const auto unit_at_1 = static_cast<float>(2 * unit_roundoff(type));
  parallel_for_each(0, static_cast<int64_t>(weights.size()), [&](int64_t i) {
    const auto place = static_cast<size_t>(i);
    const float w = low ? static_cast<float>(bf16(weights[place])) : weights[place];
    if (w == 0.0f) return;  // gaps between parameters
    const float power = std::bit_cast<float>(std::bit_cast<uint32_t>(w) & 0x7f800000u);
    const bool up = random_bits(seed, kFirstStream + static_cast<uint64_t>(twin), place) & 1;
    weights[place] = w + (up ? unit_at_1 : -unit_at_1) * power;
  });
}

double learning_rate(const ModelConfig& config, int64_t step, int64_t steps) {
  constexpr double kLowest = 0.1;
  const double warm = static_cast<double>(std::min<int64_t>(config.warm_up, steps / 2));
  const auto t = static_cast<double>(step);
  if (t < warm) return config.learning_rate * (t + 1) / warm;
  const double done = (t - warm) / std::max(1.0, static_cast<double>(steps) - warm);
  const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return config.learning_rate * (kLowest + (1.0 - kLowest) * cosine);
}

namespace {

RunReport report_of(const ModelConfig& config, DType dtype, const TokenData& data,
                    const TrainSettings& settings) {
  RunReport report;
  report.config = config.name;
  report.dtype = dtype;
  report.side = settings.side;
  report.twin = settings.twin;
  report.learning_rate = config.learning_rate;
  report.parameters = config.parameters();
  report.vocabulary = config.vocabulary;
  report.tokenizer_entries = data.entries();
  report.tokens_per_step = config.tokens_per_step();
  report.seed = settings.seed;
  report.executor = device_info().kind == "cuda" ? "cuda" : "fast";
  report.held_out_loss = std::numeric_limits<double>::quiet_NaN();
  return report;
}

bool given(const TrainSettings& s) { return s.weights != nullptr && !s.weights->empty(); }

// FNV-1a (Fowler, Noll, Vo) over the words of the first weights.
std::string weights_of(const TrainSettings& s) {
  if (!given(s)) return {};
  uint64_t hash = 0xcbf29ce484222325u;
  for (const float w : *s.weights) hash = (hash ^ std::bit_cast<uint32_t>(w)) * 0x100000001b3u;
  return fmt::format(" weights {:016x}", hash);
}

// What two trainings have in common when one may go on from the other's state.
std::string identity_of(const ModelConfig& config, const TokenData& data, const RunReport& report,
                        const TrainSettings& s) {
  return fmt::format("{} {} twin {} seed {} steps {} of {} data {:016x}{} {}", name_of(s.side),
                     name_of(report.dtype), s.twin, s.seed, s.steps, s.horizon, data.fingerprint(),
                     weights_of(s), description(config));
}

template <class P>
void set_first_weights(Model<P>& model, const ModelConfig& config, const TrainSettings& s) {
  std::vector<float> weights = given(s) ? *s.weights : initial_weights(config, s.seed);
  if (s.side == Side::kNoise) add_noise(weights, dtype_of<typename P::Elem>, s.seed, s.twin);
  model.set_weights(weights);
}

template <class P>
void show_state(const Model<P>& model, const TrainSettings& s, int step) {
  if (std::find(s.states.begin(), s.states.end(), step) != s.states.end())
    s.on_state(step, model.weights());
}

// The file of a training's state, if it has one.
template <class P>
class Saved {
 public:
  Saved(const TrainSettings& settings, std::string identity, const Model<P>& model)
      : settings_(settings), identity_(std::move(identity)), model_(model) {}

  // The losses of the steps that need not be run again.
  std::vector<double> restore() const {
    std::error_code ignored;
    if (!std::filesystem::exists(settings_.checkpoint, ignored)) return {};
    return load_checkpoint(settings_.checkpoint, model_.state(), identity_).loss;
  }
  void after_step(const std::vector<double>& loss) const {
    const auto every = static_cast<size_t>(settings_.checkpoint_every);
    if (every > 0 && loss.size() % every == 0) save(loss);
  }
  void at_end(const std::vector<double>& loss, bool complete) const {
    std::error_code ignored;
    if (!complete || settings_.checkpoint_every > 0)
      save(loss);
    else if (!settings_.checkpoint.empty())
      std::filesystem::remove(settings_.checkpoint, ignored);
  }

 private:
  void save(const std::vector<double>& loss) const {
    if (!settings_.checkpoint.empty() && !loss.empty())
      save_checkpoint(settings_.checkpoint, model_.state(), {identity_, loss});
  }

  const TrainSettings& settings_;
  std::string identity_;
  const Model<P>& model_;
};

}  // namespace

template <class P>
RunReport train(const ModelConfig& config, const Ops<P>& ops, const TokenData& data,
                const TrainSettings& settings) {
  const Clock::time_point start = Clock::now();
  RunReport report = report_of(config, dtype_of<typename P::Elem>, data, settings);
  std::vector<double> seconds;
  size_t before = 0;
  try {
    Model<P>::tune(config, ops);
    before = device_memory_stats().current;
    device_memory_reset_high_water();
    Model<P> model(config, ops);
    set_first_weights(model, config, settings);
    const Saved<P> saved(settings, identity_of(config, data, report, settings), model);
    report.loss = saved.restore();
    report.steps = static_cast<int>(report.loss.size());
    show_state(model, settings, report.steps);
    while (report.steps < settings.steps && !asked_to_stop(settings)) {
      const int step = report.steps++;
      std::vector<Batch> batches;
      for (int i = 0; i < config.accumulate; ++i)
        batches.push_back(
            data.train(settings.seed, int64_t{step} * config.accumulate + i, config.batch));
      const Clock::time_point step_start = Clock::now();
      const StepResult result =
          model.step(batches, {step, learning_rate(config, step, settings.horizon)});
      seconds.push_back(seconds_since(step_start));
      report.loss.push_back(result.loss);
      report.grad_norm.push_back(result.grad_norm);
      report.peak_bytes = static_cast<int64_t>(device_memory_stats().high_water - before);
      if (settings.on_step)
        settings.on_step({report.dtype, settings.side, settings.twin, step, settings.steps,
                          result.loss, result.grad_norm, seconds.back(), config.name,
                          static_cast<double>(report.tokens_per_step) / seconds.back(),
                          report.peak_bytes});
      saved.after_step(report.loss);
      show_state(model, settings, report.steps);
    }
    report.planned_bytes = model.planned_bytes();
    report.attention = Model<P>::attention_of(config);
    report.launches = model.launches();
    report.complete = report.steps == settings.steps;
    if (report.complete) report.held_out_loss = held_out_loss(model, config, data);
    saved.at_end(report.loss, report.complete);
  } catch (const DeviceError& e) {
    throw ConvergeError(5, fmt::format("{} {} {}: {}", config.name, name_of(settings.side),
                                       name_of(report.dtype), e.what()));
  }
  report.final_loss = mean_of_last_tenth(report.loss);
  report.peak_bytes = static_cast<int64_t>(device_memory_stats().high_water - before);
  // Nothing to time when all steps were done before.
  report.tokens_per_s = seconds.empty()
                            ? std::numeric_limits<double>::quiet_NaN()
                            : static_cast<double>(report.tokens_per_step) / median(seconds);
  report.seconds_s = seconds_since(start);
  return report;
}

template RunReport train<F32>(const ModelConfig&, const Ops<F32>&, const TokenData&,
                              const TrainSettings&);
template RunReport train<BF16>(const ModelConfig&, const Ops<BF16>&, const TokenData&,
                               const TrainSettings&);

}  // namespace tigon::convergence
