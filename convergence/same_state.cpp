// SPDX-License-Identifier: Apache-2.0
// Gradients of both sides and of the reference at one state, and their distances.
#include "convergence/same_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "convergence/model.h"
#include "convergence/reference_model.h"
#include "convergence/threads.h"

namespace tigon::convergence {
namespace {

constexpr double kWorse = 1.1;  // than the naive error

// Of one pass, without a graph. In double one sequence takes seconds.
ModelConfig one_pass(ModelConfig c, DType dtype) {
  c.accumulate = 1;
  c.graph = false;
  if (dtype == DType::kF32) c.batch = 1;
  return c;
}

template <class P>
std::vector<std::vector<float>> gradients_at(const ModelConfig& config, const Ops<P>& ops,
                                             const std::vector<float>& weights,
                                             const std::vector<Batch>& batches) {
  Model<P>::tune(config, ops);
  Model<P> model(config, ops);
  std::vector<std::vector<float>> gradients;
  for (const Batch& batch : batches) {
    model.set_weights(weights);
    model.step(batch, {0, 0.0});
    gradients.push_back(model.gradients());
  }
  return gradients;
}

// The weights that a model of this type has.
template <class Elem>
std::vector<float> rounded(std::vector<float> weights) {
  for (float& w : weights) w = static_cast<float>(Elem(w));
  return weights;
}

double rounding(const ModelConfig& c, DType dtype) {
  const double u = unit_roundoff(dtype);
  if (dtype != DType::kF32) return u;
  return u * std::sqrt(static_cast<double>(std::max<int64_t>(c.tokens_per_pass(), c.vocabulary)));
}

// Adds one batch's; the sums become means in mean_of().
void add_error(const std::vector<float>& g, const std::vector<double>& r, const Parameter& p,
               GradientError& sums) {
  double gg = 0, rr = 0, gr = 0, dd = 0;
  for (auto i = static_cast<size_t>(p.offset); i < static_cast<size_t>(p.offset + p.size()); ++i) {
    const double x = static_cast<double>(g[i]), d = x - r[i];
    gg += x * x;
    rr += r[i] * r[i];
    gr += x * r[i];
    dd += d * d;
  }
  if (rr == 0 && gg == 0) {  // as of a weight that nothing depends on
    sums.cosine += 1;
    return;
  }
  const double along = gr / rr - 1;
  sums.error += dd / rr;
  sums.along += along * along;
  sums.across += std::max(0.0, dd / rr - along * along);
  sums.cosine += gr / std::sqrt(gg * rr);
  sums.bias += along;
}

GradientError error_of(const std::vector<std::vector<float>>& g,
                       const std::vector<std::vector<double>>& r, const Parameter& p) {
  GradientError e;
  for (size_t i = 0; i < g.size(); ++i) add_error(g[i], r[i], p, e);
  const auto n = static_cast<double>(g.size());
  return {std::sqrt(e.error / n), std::sqrt(e.across / n), std::sqrt(e.along / n), e.cosine / n,
          e.bias / n};
}

// Empty when it is within its budgets.
std::string problem_of(const StateParameter& p) {
  const std::string where =
      fmt::format("gradient of {} from the state of step {}", p.parameter, p.step);
  if (!(p.fused.across <= p.budget))
    return fmt::format("{} is off by {:.3g} of its norm, {:.3g} is allowed, naive is off by {:.3g}",
                       where, p.fused.across, p.budget, p.naive.across);
  if (!(std::abs(p.fused.bias) <= p.bias_budget))
    return fmt::format("{} is scaled by 1 {:+.3g}, {:.3g} is allowed, naive by 1 {:+.3g}", where,
                       p.fused.bias, p.bias_budget, p.naive.bias);
  return {};
}

}  // namespace

std::vector<int> state_steps(const ModelConfig& config, int steps) {
  std::vector<int> points = {0, std::min(config.warm_up, steps), steps};
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

std::string reference_of(const ModelConfig& c, DType dtype, std::string& reason) {
  constexpr int64_t kMostMultiplications = int64_t{1} << 30;  // in double, seconds
  constexpr int64_t kMostParameters = int64_t{1} << 30;       // host memory holds 80 bytes of each
  if (dtype != DType::kF32) {
    if (c.parameters() <= kMostParameters) return "f32, naive, on the same device";
    reason = "too many parameters for the host's memory";
    return {};
  }
  if (c.parameters() * c.sequence <= kMostMultiplications) return "double";
  reason = "too large for a reference in double";
  return {};
}

template <class P>
StateReference reference_at(const ModelConfig& config, const TokenData& data, uint64_t seed,
                            const TrainingState& state) {
  using Elem = typename P::Elem;
  const ModelConfig c = one_pass(config, dtype_of<Elem>);
  StateReference at;
  at.step = state.step;
  at.weights = state.weights;
  for (int i = 0; i < kStateBatches; ++i)
    at.batches.push_back(data.train(seed, int64_t{state.step} * config.accumulate + i, c.batch));
  at.naive = gradients_at<P>(c, naive_ops<P>(), at.weights, at.batches);
  const std::vector<float> weights = rounded<Elem>(at.weights);
  if constexpr (std::is_same_v<Elem, float>) {
    const Doubles doubles(weights.begin(), weights.end());
    at.reference.resize(at.batches.size());
    parallel_for(kStateBatches, [&](int i) {
      const auto batch = static_cast<size_t>(i);
      at.reference[batch] = ReferenceModel(c).gradient(doubles, at.batches[batch]);
    });
  } else {
    for (const auto& g : gradients_at<F32>(c, naive_ops<F32>(), weights, at.batches))
      at.reference.emplace_back(g.begin(), g.end());
  }
  return at;
}

template <class P>
void compare_state(const ModelConfig& config, const Ops<P>& fused, const StateReference& at,
                   StateReport& report) {
  constexpr DType kType = dtype_of<typename P::Elem>;
  const ModelConfig c = one_pass(config, kType);
  const auto gradients = gradients_at<P>(c, fused, at.weights, at.batches);
  const double rho = rounding(c, kType);
  const ParameterLayout layout(config);
  for (const Parameter& p : layout.parameters) {
    if (p.offset >= layout.trained) continue;
    StateParameter row;
    row.step = at.step;
    row.parameter = p.name;
    row.naive = error_of(at.naive, at.reference, p);
    row.fused = error_of(gradients, at.reference, p);
    row.budget = kWorse * row.naive.across + rho;
    row.bias_budget = kWorse * row.naive.along + rho;
    report.parameters.push_back(row);
    if (!report.reason.empty()) continue;
    report.reason = problem_of(row);
    if (!report.reason.empty()) report.first_step = at.step;
  }
  report.verdict = report.reason.empty() ? "passed" : "incorrect_numerical";
}

template StateReference reference_at<F32>(const ModelConfig&, const TokenData&, uint64_t,
                                          const TrainingState&);
template StateReference reference_at<BF16>(const ModelConfig&, const TokenData&, uint64_t,
                                           const TrainingState&);
template void compare_state<F32>(const ModelConfig&, const Ops<F32>&, const StateReference&,
                                 StateReport&);
template void compare_state<BF16>(const ModelConfig&, const Ops<BF16>&, const StateReference&,
                                  StateReport&);

}  // namespace tigon::convergence
