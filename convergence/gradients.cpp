// SPDX-License-Identifier: Apache-2.0
// The gradient check.
#include "convergence/gradients.h"

#include <fmt/format.h>

#include <cmath>

#include "convergence/micro.h"
#include "convergence/train.h"

namespace tigon::convergence {
namespace {

constexpr uint64_t kIgnoreEvery = 7;
constexpr double kRate = 1e-3;

std::vector<float> lively_weights(const ModelConfig& config, uint64_t seed) {
  constexpr uint64_t kStream = 3;
  constexpr float kMatrices = 4.0f;
  std::vector<float> w = initial_weights(config, seed);
  const ParameterLayout layout(config);
  for (size_t i = 0; i < w.size(); ++i)
    if (static_cast<int64_t>(i) < layout.decayed)
      w[i] *= kMatrices;
    else if (w[i] != 0.0f)  // gaps between parameters
      w[i] = 0.5f + static_cast<float>(random_bits(seed, kStream, i) % 1024) / 1024.0f;
  return w;
}

Batch batch_of(const TokenData& data, const ModelConfig& config, uint64_t seed, int step) {
  constexpr uint64_t kStream = 4;
  Batch batch = data.train(seed, step, config.batch);
  for (size_t i = 0; i < batch.target.size(); ++i)
    if (random_bits(seed, kStream, i) % kIgnoreEvery == 0) batch.target[i] = kIgnored;
  return batch;
}

double budget_of(const ModelConfig& c, DType dtype) {
  double roundings = 24.0 * c.layers + 6;
  if (dtype == DType::kF32)
    roundings += 2.0 * c.layers * (3 * c.hidden + static_cast<int>(c.q_size()) + c.intermediate) +
                 c.vocabulary + c.hidden + static_cast<double>(c.tokens_per_step());
  return 1.5 * unit_roundoff(dtype) * std::sqrt(roundings / 3.0);
}

double relative_error(const std::vector<float>& got, const Doubles& want, const Parameter& p) {
  double error = 0, norm = 0;
  for (auto i = static_cast<size_t>(p.offset); i < static_cast<size_t>(p.offset + p.size()); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(error / norm);
}

void judge_gradients(GradientReport& report) {
  report.verdict = "passed";
  for (const ParameterError& p : report.parameters) {
    if (p.error <= p.budget) continue;
    report.verdict = "incorrect_numerical";
    report.first_step = p.step;
    report.reason = fmt::format(
        "gradient of {} at step {} is off by {:.3g} of its norm, {:.3g} is "
        "allowed",
        p.parameter, p.step, p.error, p.budget);
    return;
  }
}

}  // namespace

ModelConfig gradient_config(DType dtype) {
  ModelConfig c = micro_config(false);
  c.layers = 1;
  c.sequence = 16;
  c.batch = 32;
  c.softcap = 5.0f;
  if (dtype == DType::kF32) c.attention_softcap = 0.5f;
  c.logits_bytes = c.vocabulary * 2;
  return c;
}

const Doubles& GradientOracle::gradient(const ModelConfig& config, int step, const Doubles& weights,
                                        const Batch& batch) {
  Answer& answer = answers_[step];
  if (answer.weights != weights)
    answer = {weights, ReferenceModel(config).gradient(weights, batch)};
  return answer.gradient;
}

template <class P>
GradientReport check_gradients(const Ops<P>& ops, uint64_t seed, GradientOracle& oracle) {
  using Elem = typename P::Elem;
  const ModelConfig config = gradient_config(dtype_of<Elem>);
  const TokenData data = micro_data(config);
  GradientReport report;
  report.config = config.name;
  report.dtype = dtype_of<Elem>;
  const double budget = budget_of(config, report.dtype);
  Model<P> model(config, ops);
  model.set_weights(lively_weights(config, seed));
  for (int step = 0; step < kGradientSteps && report.verdict != "incorrect_numerical"; ++step) {
    Doubles weights;
    for (float w : model.weights())
      weights.push_back(static_cast<double>(static_cast<float>(Elem(w))));
    const Batch batch = batch_of(data, config, seed, step);
    model.step(batch, {step, kRate});
    const std::vector<float> gradient = model.gradients();
    const Doubles& want = oracle.gradient(config, step, weights, batch);
    for (const Parameter& p : model.layout().parameters)
      report.parameters.push_back({step + 1, p.name, relative_error(gradient, want, p), budget});
    judge_gradients(report);
  }
  return report;
}

template GradientReport check_gradients<F32>(const Ops<F32>&, uint64_t, GradientOracle&);
template GradientReport check_gradients<BF16>(const Ops<BF16>&, uint64_t, GradientOracle&);

}  // namespace tigon::convergence
