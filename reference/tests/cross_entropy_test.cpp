// SPDX-License-Identifier: Apache-2.0
// Tests of cross_entropy's oracle.
#include "reference/cross_entropy_scale.h"

#include "reference/tests/dual.h"
#include "reference/tests/loss_options.h"

namespace tigon::reference {
namespace {

using cross_entropy::Backward;
using cross_entropy::Forward;
using cross_entropy::ForwardBackward;

const double kMean = static_cast<double>(Reduction::kMean);
const double kSum = static_cast<double>(Reduction::kSum);
const double kNone = static_cast<double>(Reduction::kNone);

// loss, lse and gradient (as "logits") of a call.
Values run(const Binding& setting, const Values& in) {
  Call<ForwardBackward<F64>> call(setting, in);
  cross_entropy::forward_backward(call.args);
  return {{"loss", call.get("loss")}, {"lse", call.get("lse")}, {"logits", call.get("logits")}};
}

TEST(CrossEntropy, HandComputedRow) {
  const Values in{{"logits", {0, std::log(3.0)}}, {"target", {1}}};  // p = 1/4, 3/4
  const Values out = run({{"T", 1}, {"V", 2}}, in);
  expect_close(out.at("lse"), {std::log(4.0)}, 1e-15, "lse");
  expect_close(out.at("loss"), {std::log(4.0 / 3)}, 1e-15, "loss");
  expect_close(out.at("logits"), {0.25, -0.25}, 1e-15, "gradient");
}

TEST(CrossEntropy, HandComputedOptions) {
  const Values in{{"logits", {0, std::log(3.0)}}, {"target", {1}}, {"dloss", {2}}};
  const Binding setting{{"T", 1}, {"V", 2}, {"label_smoothing", 0.5}, {"z_loss", 0.25}};
  const Values out = run(setting, in);
  const double lse = std::log(4.0), k = 1 + 0.5 * lse;
  expect_close(out.at("loss"),
               {0.5 * std::log(4.0 / 3) + 0.5 * (lse - std::log(3.0) / 2) + 0.25 * lse * lse},
               1e-15, "loss");
  expect_close(out.at("logits"), {2 * (0.25 * k - 0.25), 2 * (0.75 * k - 0.75)}, 1e-15, "gradient");
}

TEST(CrossEntropy, HandComputedSoftcap) {
  const double z = 2 * std::atanh(0.5);  // 2 tanh(z / 2) = 1, derivative 3/4
  const Values in{{"logits", {0, z}}, {"target", {0}}};
  const Values out = run({{"T", 1}, {"V", 2}, {"softcap", 2}}, in);
  const double p = std::exp(1) / (1 + std::exp(1));
  expect_close(out.at("lse"), {std::log(1 + std::exp(1))}, 1e-15, "lse");
  expect_close(out.at("logits"), {-p, 0.75 * p}, 1e-15, "gradient");
}

// p = 1/4, 3/4 and 1/2, 1/2; weights 2 and 6 of the targets.
TEST(CrossEntropy, HandComputedClassWeights) {
  const Values in{
      {"logits", {0, std::log(3.0), 5, 5}}, {"target", {1, 0}}, {"class_weight", {2, 6}}};
  const double first = std::log(4.0 / 3), second = std::log(2.0);
  const Values mean = run({{"T", 2}, {"V", 2}}, in);
  expect_close(mean.at("loss"), {(6 * first + 2 * second) / 8}, 1e-15, "loss");
  expect_close(mean.at("logits"), {6. / 8 / 4, -6. / 8 / 4, -2. / 8 / 2, 2. / 8 / 2}, 1e-15,
               "gradient");
  const Values sum = run({{"T", 2}, {"V", 2}, {"reduction", kSum}}, in);
  expect_close(sum.at("loss"), {6 * first + 2 * second}, 1e-15, "loss");
  // a / V sum_i w_i (lse - x_i) is half of it; the z-loss is divided by two rows.
  const double lse = std::log(4.0), lse2 = 5 + second;
  const double smoothed =
      0.5 * (6 * first + 2 * second) + 0.25 * (2 * lse + 6 * first + 8 * second);
  const Values all = run({{"T", 2}, {"V", 2}, {"label_smoothing", 0.5}, {"z_loss", 0.25}}, in);
  expect_close(all.at("loss"), {smoothed / 8 + 0.25 * (lse * lse + lse2 * lse2) / 2}, 1e-15,
               "loss");
}

TEST(CrossEntropy, ClassWeightsThatSumToNothing) {
  const Values in{{"logits", {0, 1}}, {"target", {1}}, {"class_weight", {1, 0}}};
  const Values out = run({{"T", 1}, {"V", 2}}, in);
  expect_close(out.at("loss"), {0}, 0, "loss");
  expect_close(out.at("logits"), {0, 0}, 0, "gradient");
}

TEST(CrossEntropy, HandComputedResults) {
  // Rows: right; a tie that the first class wins; ignored; invalid.
  const Values in{{"logits", {0, std::log(3.0), 5, 5, 7, 8, 1, 2}}, {"target", {1, 1, -100, 9}}};
  Binding setting{{"T", 4}, {"V", 2}, {"z_loss", 0.25}, {"reduction", kNone}};
  for (const char* result : {"z_part", "accuracy", "entropy"}) setting[result] = 1;
  Call<Forward<F64>> none(setting, in);
  cross_entropy::forward(none.args);
  expect_close(none.get("accuracy"), {1, 0, 0, kNaN}, 0, "accuracy");
  const double entropy = std::log(4.0) - 0.75 * std::log(3.0);
  const std::vector<double> entropies = none.get("entropy");
  expect_close({entropies[0], entropies[1], entropies[2]}, {entropy, std::log(2.0), 0}, 1e-15,
               "entropy");
  const double z = std::log(4.0);
  EXPECT_NEAR(none.get("z_part")[0], 0.25 * z * z, 1e-15);
  Values counted = in;
  counted["target"] = {1, 1, -100, -100};
  setting["reduction"] = kMean;
  Call<Forward<F64>> mean(setting, counted);
  cross_entropy::forward(mean.args);
  expect_close(mean.get("accuracy"), {0.5}, 0, "accuracy");
  expect_close(mean.get("entropy"), {(entropy + std::log(2.0)) / 2}, 1e-15, "entropy");
}

TEST(CrossEntropy, ImpossibleClassesAddNothingToTheEntropy) {
  // As many as Eigen's exp takes at once.
  std::vector<double> logits(16, -std::numeric_limits<double>::infinity());
  logits[0] = logits[1] = 3;
  Call<Forward<F64>> call({{"T", 1}, {"V", 16}, {"entropy", 1}, {"reduction", kNone}},
                          {{"logits", logits}, {"target", {0}}});
  cross_entropy::forward(call.args);
  expect_close(call.get("entropy"), {std::log(2.0)}, 1e-15, "entropy");
}

TEST(CrossEntropy, EqualLogits) {
  const Values in{{"logits", {7, 7, 7, 7}}, {"target", {3}}};
  const Values out = run({{"T", 1}, {"V", 4}}, in);
  expect_close(out.at("loss"), {std::log(4.0)}, 1e-15, "loss");
  expect_close(out.at("logits"), {0.25, 0.25, 0.25, -0.75}, 1e-15, "gradient");
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  const Values in{{"logits", {1000, 0, -1000, -1000}}, {"target", {1, 0}}};
  const Values out = run({{"T", 2}, {"V", 2}, {"reduction", kNone}}, in);
  expect_close(out.at("loss"), {1000, std::log(2.0)}, 1e-15, "loss");
  expect_close(out.at("logits"), {1, -1, -0.5, 0.5}, 1e-12, "gradient");  // lse is -999.3
}

TEST(CrossEntropy, MinusInfinityTakesNoPart) {
  const Values in{{"logits", {0, -kInf, std::log(3.0)}}, {"target", {2}}};
  const Values out = run({{"T", 1}, {"V", 3}}, in);
  expect_close(out.at("loss"), {std::log(4.0 / 3)}, 1e-15, "loss");
  expect_close(out.at("logits"), {0.25, 0, -0.25}, 1e-15, "gradient");
}

TEST(CrossEntropy, MinusInfinityAsTargetOrSmoothed) {
  const Values in{{"logits", {0, -kInf}}, {"target", {1}}};
  EXPECT_EQ(run({{"T", 1}, {"V", 2}}, in).at("loss")[0], kInf);
  const Values smoothed{{"logits", {0, -kInf}}, {"target", {0}}};
  EXPECT_EQ(run({{"T", 1}, {"V", 2}, {"label_smoothing", 0.5}}, smoothed).at("loss")[0], kInf);
}

TEST(CrossEntropy, RowOfMinusInfinity) {
  const Values out = run({{"T", 1}, {"V", 2}}, {{"logits", {-kInf, -kInf}}, {"target", {0}}});
  expect_close(out.at("lse"), {-kInf}, 0, "lse");
  expect_close(out.at("loss"), {kNaN}, 0, "loss");
  expect_close(out.at("logits"), {kNaN, kNaN}, 0, "gradient");
}

TEST(CrossEntropy, NaNAndInfinityPoisonTheirRow) {
  for (double bad : {kNaN, kInf}) {
    const Values in{{"logits", {0, bad, 1, 1}}, {"target", {0, 0}}};
    const Values out = run({{"T", 2}, {"V", 2}, {"reduction", kNone}}, in);
    expect_close(out.at("lse"), {kNaN, 1 + std::log(2.0)}, 1e-15, "lse");
    expect_close(out.at("loss"), {kNaN, std::log(2.0)}, 1e-15, "loss");
    expect_close(out.at("logits"), {kNaN, kNaN, -0.5, 0.5}, 1e-15, "gradient");
  }
}

TEST(CrossEntropy, IgnoredRowsDoNotMatter) {
  const Values in{{"logits", {kNaN, kInf, 0, std::log(3.0)}}, {"target", {-100, 1}}};
  const Values out = run({{"T", 2}, {"V", 2}}, in);
  expect_close(out.at("loss"), {std::log(4.0 / 3)}, 1e-15, "loss");
  expect_close(out.at("lse"), {0, std::log(4.0)}, 1e-15, "lse");
  expect_close(out.at("logits"), {0, 0, 0.25, -0.25}, 1e-15, "gradient");
}

TEST(CrossEntropy, AllIgnoredGiveZero) {
  for (double reduction : {kMean, kSum, kNone}) {
    const Values in{{"logits", {1, kNaN}}, {"target", {-100}}, {"dloss", {kNaN}}};
    const Values out = run({{"T", 1}, {"V", 2}, {"reduction", reduction}}, in);
    expect_close(out.at("loss"), {0}, 0, "loss");
    expect_close(out.at("lse"), {0}, 0, "lse");
    expect_close(out.at("logits"), {0, 0}, 0, "gradient");
  }
}

TEST(CrossEntropy, NoRows) {
  for (double reduction : {kMean, kSum})
    expect_close(
        run({{"T", 0}, {"V", 2}, {"reduction", reduction}}, {{"logits", {}}, {"target", {}}})
            .at("loss"),
        {0}, 0, "loss");
}

TEST(CrossEntropy, InvalidTargetPoisonsItsRowAndCounts) {
  for (double bad : {-1.0, 2.0, -101.0}) {
    const Values in{{"logits", {0, 0, 0, 0}}, {"target", {bad, 0}}};
    const Values mean = run({{"T", 2}, {"V", 2}}, in);
    expect_close(mean.at("loss"), {kNaN}, 0, "loss");
    expect_close(mean.at("lse"), {std::log(2.0), std::log(2.0)}, 1e-15, "lse");
    expect_close(mean.at("logits"), {kNaN, kNaN, -0.25, 0.25}, 1e-15, "gradient");
    const Values none = run({{"T", 2}, {"V", 2}, {"reduction", kNone}}, in);
    expect_close(none.at("loss"), {kNaN, std::log(2.0)}, 1e-15, "loss");
  }
}

// What a few roundings of a magnitude count in S beside a sum over two columns.
double few_of_two(double magnitude) { return 2 * magnitude / (4 * std::sqrt(1 + 2 / 32.0) + 16); }

TEST(CrossEntropy, ScaleOfSpecialRows) {
  const Values in{{"logits", {0, -kInf, kNaN, kNaN, 0, 1}}, {"target", {0, -100, 7}}};
  Call<ForwardBackward<F64>> scale({{"T", 3}, {"V", 2}, {"reduction", kNone}}, in);
  cross_entropy::forward_backward_scale(scale.args);
  expect_close(scale.get("lse"), {1, 0, 1 + few_of_two(1 + 1 + std::log(1 + std::exp(-1)))}, 1e-15,
               "lse");
  for (int i : {0, 1, 4, 5}) EXPECT_TRUE(std::isfinite(scale.get("logits")[i])) << i;
  EXPECT_LT(scale.get("logits")[1], 1e-30);
  expect_close({scale.get("logits")[2], scale.get("logits")[3]}, {0, 0}, 0, "ignored");
}

TEST(CrossEntropy, HandComputedScale) {
  const double z = 2 * std::atanh(0.5);  // 2 tanh(z / 2) = 1, and 1 + tanh^2 = 5/4
  const Binding setting{
      {"T", 1}, {"V", 2}, {"softcap", 2}, {"label_smoothing", 0.5}, {"z_loss", 0.25}};
  Call<ForwardBackward<F64>> scale(setting, {{"logits", {0, z}}, {"target", {0}}, {"dloss", {-2}}});
  cross_entropy::forward_backward_scale(scale.args);
  const double lse = std::log(1 + std::exp(1)), lse_scale = 1 + few_of_two(lse + 1);
  const double factor = 1 + 0.5 * lse, loss = 0.5 * lse + 0.25 * lse * lse + 0.25 * (2 * lse - 1);
  const double terms = 1 + 2 / 32.0, of_rows = 2 * std::sqrt(1 / (1 + terms));
  expect_close(scale.get("loss"),
               {lse_scale * factor + 0.5 * 0.5 + few_of_two(factor * lse + 0) + of_rows * loss},
               1e-14, "loss");
  const double expected = 4 * std::sqrt(terms) + 24;
  const double p0 = std::exp(-lse) * (1 + (0 + 1 + lse) / expected);
  const double p1 = std::exp(1 - lse) * (1 + (1 + 1 + lse) / expected);
  const double k = 1 + 0.5 * (lse + 1);
  expect_close(scale.get("logits"), {2 * (p0 * k + 0.75), 2 * (p1 * k + 0.25) * 1.25}, 1e-14,
               "gradient");
}

TEST(CrossEntropy, ScaleAllowsFlushToZero) {
  const Values in{{"logits", {0, -100}}, {"target", {0}}};  // p_1 = 2^-144
  Call<ForwardBackward<F64>> scale({{"T", 1}, {"V", 2}}, in);
  cross_entropy::forward_backward_scale(scale.args);
  EXPECT_GE(24 * 0x1p-24 * scale.get("logits")[1], 0x1p-126);
}

class CrossEntropyOptions : public testing::TestWithParam<LossCase> {
 protected:
  static constexpr int64_t kT = 4, kV = 6;
  const Binding setting_ = loss_setting(GetParam(), {{"T", kT}, {"V", kV}});

  Values inputs(double size, double offset) {
    Random random(5);
    Values in{{"logits", random.normal(kT * kV, size)}, {"target", random.targets(kT, kV, 2)}};
    for (double& z : in["logits"]) z += offset;
    if (std::get<4>(GetParam())) in["dloss"] = loss_upstream(GetParam(), kT);
    add_class_weights(GetParam(), kV, &in);
    return in;
  }
};

TEST_P(CrossEntropyOptions, BackwardIsDerivativeOfForward) {
  const Values in = inputs(2, 0);
  Values upstream{{"loss", std::vector<double>(run(setting_, in).at("loss").size(), 1)}};
  if (in.count("dloss")) upstream["loss"] = in.at("dloss");
  const auto derivative = dual_gradient<Forward>(setting_, in, "logits", upstream,
                                                 [](auto& a) { cross_entropy::forward(a); });
  expect_close(run(setting_, in).at("logits"), derivative, 1e-12, "gradient");
}

TEST_P(CrossEntropyOptions, PassesAgree) {
  Values in = inputs(2, 0);
  const Values both = run(setting_, in);
  Call<Forward<F64>> forward(setting_, in);
  cross_entropy::forward(forward.args);
  EXPECT_EQ(forward.get("loss"), both.at("loss"));
  EXPECT_EQ(forward.get("lse"), both.at("lse"));
  in["lse"] = both.at("lse");
  Call<Backward<F64>> backward(setting_, in);
  cross_entropy::backward(backward.args);
  EXPECT_EQ(backward.get("logits"), both.at("logits"));
}

TEST_P(CrossEntropyOptions, ScaleBoundsFp32) {
  for (const auto& [size, offset] : {std::pair{1.0, 0.0}, {6.0, 0.0}, {3.0, 200.0}}) {
    const Values in = inputs(size, offset), value = run(setting_, in);
    Call<ForwardBackward<F64>> scale(setting_, in);
    Call<ForwardBackward<F32>> fp32(setting_, in);
    cross_entropy::forward_backward_scale(scale.args);
    cross_entropy::forward_backward(fp32.args);
    for (const auto& [t, c0] : {std::pair{"loss", 16}, {"lse", 16}, {"logits", 24}})
      expect_budget(value.at(t), scale.get(t), as_double(fp32.get(t)), row_sum_terms(kV), c0, t);
    Call<ForwardBackward<F64>> results(setting_, in);
    cross_entropy::forward_backward(results.args);
    for (const char* t : {"z_part", "accuracy", "entropy"})
      expect_budget(results.get(t), scale.get(t), as_double(fp32.get(t)), row_sum_terms(kV), 16, t);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CrossEntropyOptions, all_loss_options(), loss_case_name);

}  // namespace
}  // namespace tigon::reference
