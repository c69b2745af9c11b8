// The whole model: gradients against those of a double model, naive against fused.
#include "convergence/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "convergence/reference_model.h"
#include "convergence/micro.h"
#include "convergence/train.h"

namespace tigon::convergence {
namespace {

// Weights large enough that every term of every gradient matters.
std::vector<float> large_weights(const ModelConfig& config) {
  std::vector<float> w = initial_weights(config, 7);
  const ParameterLayout layout(config);
  for (int64_t i = 0; i < layout.total; ++i) {
    float& x = w[static_cast<size_t>(i)];
    const auto bits = random_bits(11, 3, static_cast<uint64_t>(i));
    if (i < layout.decayed)
      x *= 12.0f;
    else if (x != 0.0f)
      x = 0.5f + static_cast<float>(bits % 1024) / 1024.0f;
  }
  return w;
}

// The tape's derivatives against central differences, which are good to 1e-9.
TEST(ReferenceModel, GradientIsThatOfItsLoss) {
  const ModelConfig config = micro_config(true);
  const Batch batch = micro_batch(config, 0);
  const std::vector<float> weights = large_weights(config);
  const ReferenceModel reference(config);
  Doubles w(weights.begin(), weights.end());
  const Doubles gradient = reference.gradient(w, batch);
  constexpr double kStep = 1e-4;
  constexpr size_t kEvery = 97;  // prime, so that every row and column is met
  for (size_t i = 0; i < w.size(); i += kEvery) {
    const double before = w[i];
    w[i] = before + kStep;
    const double up = reference.loss(w, batch);
    w[i] = before - kStep;
    const double down = reference.loss(w, batch);
    w[i] = before;
    ASSERT_NEAR(gradient[i], (up - down) / (2 * kStep), 1e-7 + 1e-6 * std::abs(gradient[i])) << i;
  }
}

struct GradientCase {
  const char* side;
  bool tied;
};
std::string name_of_case(const testing::TestParamInfo<GradientCase>& info) {
  return std::string(info.param.side) + (info.param.tied ? "_tied" : "_untied");
}

class Gradient : public testing::TestWithParam<GradientCase> {};

// f32 gradients carry roundings of sums of some hundred terms.
TEST_P(Gradient, OfEveryParameterIsThatOfTheDoubleModel) {
  const ModelConfig config = micro_config(GetParam().tied);
  const Ops<F32> ops =
      GetParam().side == std::string("naive") ? naive_ops<F32>() : fused_ops<F32>();
  const Batch batch = micro_batch(config, 0);
  const std::vector<float> weights = large_weights(config);
  Model<F32> model(config, ops);
  model.set_weights(weights);
  const StepResult result = model.step(batch, {0, 0.0});
  const std::vector<float> gradient = model.gradients();

  const ReferenceModel reference(config);
  const Doubles w(weights.begin(), weights.end());
  EXPECT_NEAR(result.loss, reference.loss(w, batch), 1e-5 * result.loss);
  double square = 0, largest = 0;
  for (float g : gradient) square += static_cast<double>(g) * g;
  for (float g : gradient) largest = std::max(largest, std::abs(static_cast<double>(g)));
  EXPECT_NEAR(result.grad_norm, std::sqrt(square), 1e-5 * std::sqrt(square));
  const Doubles want = reference.gradient(w, batch);
  for (size_t i = 0; i < w.size(); ++i)
    ASSERT_NEAR(gradient[i], want[i], 1e-4 * std::abs(want[i]) + 2e-6 * largest + 1e-8)
        << "parameter " << i;
}
INSTANTIATE_TEST_SUITE_P(Model, Gradient,
                         testing::Values(GradientCase{"naive", false}, GradientCase{"naive", true},
                                         GradientCase{"fused", false}, GradientCase{"fused", true}),
                         name_of_case);

TEST(Model, SecondStepDoesNotDependOnTheFirstStepsGradient) {
  const ModelConfig config = micro_config(false);
  const std::vector<float> weights = large_weights(config);
  Model<F32> once(config, fused_ops<F32>()), twice(config, fused_ops<F32>());
  once.set_weights(weights);
  twice.set_weights(weights);
  twice.step(micro_batch(config, 1), {0, 0.0});
  once.step(micro_batch(config, 0), {0, 0.0});
  twice.step(micro_batch(config, 0), {1, 0.0});
  EXPECT_EQ(once.gradients(), twice.gradients());
}

TEST(Model, EvaluationIsTheLossOfAStep) {
  const ModelConfig config = micro_config(false);
  Model<BF16> model(config, fused_ops<BF16>());
  model.set_weights(large_weights(config));
  const double loss = model.evaluate(micro_batch(config, 0));
  EXPECT_NEAR(model.step(micro_batch(config, 0), {0, 0.0}).loss, loss, 1e-6 * loss);
}

// AdamW by hand: the first step moves every weight that has a gradient by the rate.
TEST(Model, FirstUpdateIsRateTimesSignAndDecay) {
  ModelConfig config = micro_config(false);
  config.adam_eps = 1e-30;
  const std::vector<float> before = large_weights(config);
  Model<F32> model(config, fused_ops<F32>());
  model.set_weights(before);
  constexpr double kRate = 1e-2;
  model.step(micro_batch(config, 0), {0, kRate});
  const std::vector<float> gradient = model.gradients(), after = model.weights();
  for (size_t i = 0; i < before.size(); ++i) {
    const bool decays = static_cast<int64_t>(i) < model.layout().decayed;
    const double sign = gradient[i] > 0 ? 1 : gradient[i] < 0 ? -1 : 0;
    const double want =
        before[i] - kRate * (sign + (decays ? config.weight_decay * before[i] : 0.0));
    if (std::abs(gradient[i]) < 1e-10) continue;
    ASSERT_NEAR(after[i], want, 1e-6) << i;
  }
}

}  // namespace
}  // namespace tigon::convergence
