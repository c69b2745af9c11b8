// SPDX-License-Identifier: Apache-2.0
// The whole model: gradients against those of a double model, naive against fused.
#include "convergence/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "convergence/experiment.h"
#include "convergence/micro.h"
#include "convergence/reference_model.h"
#include "convergence/train.h"

namespace tigon::convergence {
namespace {

// Weights large enough that every term of every gradient matters; the gaps stay 0.
std::vector<float> large_weights(const ModelConfig& config) {
  std::vector<float> w = initial_weights(config, 7);
  for (const Parameter& p : ParameterLayout(config).parameters)
    for (int64_t i = p.offset; i < p.offset + p.size(); ++i) {
      float& x = w[static_cast<size_t>(i)];
      const float uniform =
          static_cast<float>(random_bits(11, 3, static_cast<uint64_t>(i)) % 1024) / 1024.0f;
      if (p.initial == Initial::kNormWeight)
        x = 0.5f - config.norm_offset + uniform;
      else if (p.initial == Initial::kZero)
        x = uniform - 0.5f;
      else
        x *= 12.0f;
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
  const char* name;
  void (*change)(ModelConfig&);
  bool fused;
};
std::string name_of_case(const testing::TestParamInfo<GradientCase>& info) {
  return std::string(info.param.fused ? "fused_" : "naive_") + info.param.name;
}
std::vector<GradientCase> gradient_cases() {
  using C = ModelConfig;
  const GradientCase kinds[] = {
      {"untied", [](C&) {}, false},
      {"tied", [](C& c) { c.tied = true; }, false},
      {"layer_norm", [](C& c) { c.norm = NormKind::kLayerNorm; }, false},
      {"offset", [](C& c) { c.norm_offset = 1.0f; }, false},
      {"qk_norm", [](C& c) { c.qk_norm = true; }, false},
      {"geglu_tanh", [](C& c) { c.activation = Activation::kGegluTanh; }, false},
      {"geglu_erf", [](C& c) { c.activation = Activation::kGegluErf; }, false},
      {"part_of_a_head_turned", [](C& c) { c.rotary = 16; }, false},
      {"interleaved", [](C& c) { c.rotary_interleaved = true; }, false},
      {"softcap", [](C& c) { c.softcap = 2.0f; }, false},
      {"attention_softcap", [](C& c) { c.attention_softcap = 0.5f; }, false},
      {"medusa", [](C& c) { c.medusa = 3; }, false},
      {"medusa_frozen", [](C& c) { c.medusa = 2, c.frozen = true; }, false},
      {"recompute", [](C& c) { c.recompute = c.qk_norm = true; }, false},
  };
  std::vector<GradientCase> cases;
  for (GradientCase c : kinds)
    for (bool fused : {false, true}) {
      if (!fused && c.name == std::string("geglu_erf")) continue;  // there is no unfused one
      c.fused = fused;
      cases.push_back(c);
    }
  return cases;
}

class Gradient : public testing::TestWithParam<GradientCase> {
 protected:
  Gradient() : config_(micro_config(false)) { GetParam().change(config_); }
  template <class P>
  Ops<P> ops() const {
    return GetParam().fused ? fused_ops<P>() : naive_ops<P>();
  }
  ModelConfig config_;
};

// f32 gradients carry roundings of sums of some hundred terms.
TEST_P(Gradient, OfEveryParameterIsThatOfTheDoubleModel) {
  ASSERT_EQ(problem_with(config_), "");
  const Batch batch = micro_batch(config_, 0);
  const std::vector<float> weights = large_weights(config_);
  Model<F32> model(config_, ops<F32>());
  model.set_weights(weights);
  EXPECT_EQ(model.weights(), weights);
  const StepResult result = model.step(batch, {0, 0.0});
  const std::vector<float> gradient = model.gradients();

  const ReferenceModel reference(config_);
  const Doubles w(weights.begin(), weights.end());
  EXPECT_NEAR(result.loss, reference.loss(w, batch), 1e-5 * result.loss);
  double square = 0, largest = 0;
  for (float g : gradient) square += static_cast<double>(g) * g;
  for (float g : gradient) largest = std::max(largest, std::abs(static_cast<double>(g)));
  EXPECT_NEAR(result.grad_norm, std::sqrt(square), 1e-5 * std::sqrt(square));
  const Doubles want = reference.gradient(w, batch);
  for (size_t i = 0; i < static_cast<size_t>(model.layout().trained); ++i)
    ASSERT_NEAR(gradient[i], want[i], 1e-4 * std::abs(want[i]) + 2e-6 * largest + 1e-8)
        << "parameter " << i;
}

TEST_P(Gradient, PlannedMemoryIsAllThatTheFusedSideTakes) {
  const size_t before = device_memory_stats().current;
  device_memory_reset_high_water();
  Model<BF16> model(config_, ops<BF16>());
  model.set_weights(large_weights(config_));
  model.step(micro_batch(config_, 0), {0, 1e-3});
  const size_t peak = device_memory_stats().high_water - before;
  EXPECT_EQ(model.planned_bytes(), Model<BF16>::plan_arena(config_, ops<BF16>()).bytes);
  if (GetParam().fused)
    EXPECT_EQ(peak, static_cast<size_t>(model.planned_bytes()));
  else
    EXPECT_GT(peak, static_cast<size_t>(model.planned_bytes()));
}
INSTANTIATE_TEST_SUITE_P(Model, Gradient, testing::ValuesIn(gradient_cases()), name_of_case);

// A frozen backbone stays as it is, to the bit.
TEST(Model, OnlyMedusaHeadsMoveWhenTheBackboneIsFrozen) {
  ModelConfig config = micro_config(false);
  config.medusa = 2;
  config.frozen = true;
  Model<BF16> model(config, fused_ops<BF16>());
  model.set_weights(large_weights(config));
  const std::vector<float> before = model.weights();
  model.step(micro_batch(config, 0), {0, 1e-2});
  const std::vector<float> after = model.weights();
  const auto trained = static_cast<std::ptrdiff_t>(model.layout().trained);
  EXPECT_FALSE(std::equal(before.begin(), before.begin() + trained, after.begin()));
  EXPECT_TRUE(std::equal(before.begin() + trained, before.end(), after.begin() + trained));
}

TEST(Model, RecomputedLayersGiveTheSameBitsInLessMemory) {
  ModelConfig kept = micro_config(true), again = kept;
  kept.layers = again.layers = 4;
  again.recompute = true;
  Model<BF16> one(kept, fused_ops<BF16>()), two(again, fused_ops<BF16>());
  for (Model<BF16>* model : {&one, &two}) {
    model->set_weights(large_weights(kept));
    for (int64_t step = 0; step < 3; ++step) model->step(micro_batch(kept, step), {step, 1e-2});
  }
  EXPECT_EQ(one.weights(), two.weights());
  EXPECT_LT(two.planned_bytes(), one.planned_bytes());
}

// The mean over both batches, as one batch of both has it.
TEST(Model, AccumulatedGradientsAreThoseOfTheWholeBatch) {
  ModelConfig half = micro_config(false), whole = half;
  half.accumulate = 2;
  whole.batch = 2 * half.batch;
  const std::vector<float> weights = large_weights(half);
  Model<F32> one(half, fused_ops<F32>()), two(whole, fused_ops<F32>());
  one.set_weights(weights);
  two.set_weights(weights);
  const TokenData data = micro_data(half);
  const StepResult parts =
      one.step({data.train(3, 0, half.batch), data.train(3, 1, half.batch)}, {0, 0.0});
  const StepResult all = two.step(data.train(3, 0, whole.batch), {0, 0.0});
  EXPECT_NEAR(parts.loss, all.loss, 1e-6 * all.loss);
  EXPECT_NEAR(parts.grad_norm, all.grad_norm, 1e-5 * all.grad_norm);
}

// Batches, rate and corrections differ from step to step: what a captured step does not read from
// device memory is that of an earlier one. On the host executor a graph calls its launches again.
TEST(Model, CapturedStepsGiveTheBitsOfLaunchesOneByOne) {
  for (const int passes : {1, 3})
    for (const bool fused : {false, true}) {
      ModelConfig config = micro_config(false), without = config;
      config.accumulate = without.accumulate = passes;
      config.medusa = without.medusa = 1;
      config.table_rate = without.table_rate = 2.0;
      without.graph = false;
      const Ops<BF16> ops = fused ? fused_ops<BF16>() : naive_ops<BF16>();
      Model<BF16> graph(config, ops), plain(without, ops);
      graph.set_weights(large_weights(config));
      plain.set_weights(large_weights(config));
      const TokenData data = micro_data(config);
      for (int step = 0; step < 5; ++step) {
        std::vector<Batch> batches;
        for (int i = 0; i < passes; ++i)
          batches.push_back(data.train(3, step * passes + i, config.batch));
        if (step == 3) {  // what is captured is given back here
          EXPECT_EQ(graph.evaluate(batches[0]), plain.evaluate(batches[0]));
        }
        const UpdateSettings update{step, 1e-2 / (step + 1)};
        const StepResult one = graph.step(batches, update), other = plain.step(batches, update);
        ASSERT_EQ(one.loss, other.loss) << "step " << step << " of " << passes << " passes";
        ASSERT_EQ(one.grad_norm, other.grad_norm) << "step " << step;
        ASSERT_EQ(graph.weights(), plain.weights()) << "step " << step;
      }
      EXPECT_EQ(graph.launches(), on_gpu() ? "CUDA graph" : "host executor");
      EXPECT_EQ(plain.launches(), on_gpu() ? "one by one: --no-graph" : "host executor");
    }
}

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

// AdamW by hand: the first step moves every weight that has a gradient by its rate, which is
// another one for the tables.
TEST(Model, FirstUpdateIsRateTimesSignAndDecay) {
  for (const double table_rate : {1.0, 3.0}) {
    ModelConfig config = micro_config(false);
    config.adam_eps = 1e-30;
    config.table_rate = table_rate;
    config.medusa = 1;
    const std::vector<float> before = large_weights(config);
    Model<F32> model(config, fused_ops<F32>());
    model.set_weights(before);
    constexpr double kRate = 1e-2;
    model.step(micro_batch(config, 0), {0, kRate});
    const std::vector<float> gradient = model.gradients(), after = model.weights();
    for (size_t i = 0; i < before.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const bool decays = at < model.layout().decayed;
      const bool table = at >= model.layout().embedding && at < model.layout().blocks.front().qkv;
      const double rate = kRate * (table ? table_rate : 1.0);
      const double sign = gradient[i] > 0 ? 1 : gradient[i] < 0 ? -1 : 0;
      const double want =
          before[i] - rate * (sign + (decays ? config.weight_decay * before[i] : 0.0));
      if (std::abs(gradient[i]) < 1e-10) continue;
      ASSERT_NEAR(after[i], want, 1e-6) << i << " with " << table_rate;
    }
  }
}

}  // namespace
}  // namespace tigon::convergence
