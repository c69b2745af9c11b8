// SPDX-License-Identifier: Apache-2.0
// Tests of rms_norm's oracle.
#include "reference/rms_norm.h"

#include "reference/tests/dual.h"

namespace tigon::reference {
namespace {

using rms_norm::Backward;
using rms_norm::Forward;
const auto kForward = [](const auto& a) { rms_norm::forward(a); };

// y and rstd of a call.
Values run_forward(const Binding& setting, const Values& in) {
  Call<Forward<F64>> call(setting, in);
  rms_norm::forward(call.args);
  return {{"y", call.get("y")}, {"rstd", call.get("rstd")}};
}

TEST(RmsNorm, HandComputedRow) {
  const Values in{{"x", {3, 4}}, {"w", {1, 2}}};
  const Values out = run_forward({{"T", 1}, {"H", 2}, {"eps", 0}, {"offset", 1}}, in);
  const double rstd = 1 / std::sqrt(12.5);
  expect_close(out.at("rstd"), {rstd}, 1e-15, "rstd");
  expect_close(out.at("y"), {6 * rstd, 12 * rstd}, 1e-15, "y");
}

TEST(RmsNorm, HandComputedGradient) {
  Call<Backward<F64>> call({{"T", 1}, {"H", 2}},
                           {{"dy", {1, 0}}, {"x", {1, -1}}, {"w", {2, 5}}, {"rstd", {1}}});
  rms_norm::backward(call.args);
  expect_close(call.get("dx"), {1, 1}, 1e-15, "dx");  // m = (2, 0), mean(m x) = 1
  expect_close(call.get("dw"), {1, 0}, 1e-15, "dw");
}

TEST(RmsNorm, ZeroRowHasFiniteGradient) {
  const double eps = 0x1p-20;
  const Binding setting{{"T", 1}, {"H", 3}, {"eps", eps}};
  const Values out = run_forward(setting, {{"x", {0, 0, 0}}, {"w", {1, 2, 3}}});
  expect_close(out.at("y"), {0, 0, 0}, 0, "y");
  Call<Backward<F64>> call(
      setting, {{"dy", {1, 1, 1}}, {"x", {0, 0, 0}}, {"w", {1, 2, 3}}, {"rstd", out.at("rstd")}});
  rms_norm::backward(call.args);
  expect_close(call.get("dx"), {1024, 2048, 3072}, 1e-15, "dx");
  expect_close(call.get("dw"), {0, 0, 0}, 0, "dw");
}

TEST(RmsNorm, EqualAndOneHotRows) {
  const Binding setting{{"T", 2}, {"H", 4}, {"eps", 0}};
  const Values out = run_forward(setting, {{"x", {-3, -3, -3, -3, 0, 5, 0, 0}}});
  expect_close(out.at("y"), {-1, -1, -1, -1, 0, 2, 0, 0}, 1e-15, "y");
}

TEST(RmsNorm, NaNStaysInItsRow) {
  const Values out = run_forward({{"T", 2}, {"H", 2}, {"eps", 0}}, {{"x", {kNaN, 1, 1, 1}}});
  expect_close(out.at("y"), {kNaN, kNaN, 1, 1}, 1e-15, "y");
}

TEST(RmsNorm, NoRowsGiveZeroWeightGradient) {
  Call<Backward<F64>> call({{"T", 0}, {"H", 2}},
                           {{"dy", {}}, {"x", {}}, {"w", {1, 2}}, {"rstd", {}}});
  rms_norm::backward(call.args);
  expect_close(call.get("dw"), {0, 0}, 0, "dw");
}

TEST(RmsNorm, CastingDoesNotMatterInDouble) {
  Random random(1);
  const Values in{{"x", random.normal(15)}, {"w", random.normal(5)}};
  const Values llama = run_forward({{"T", 3}, {"H", 5}, {"casting", 0}}, in);
  EXPECT_EQ(llama, run_forward({{"T", 3}, {"H", 5}, {"casting", 1}}, in));
}

TEST(RmsNorm, GradientInPlaceOfDy) {
  Random random(2);
  const Values in{{"dy", random.normal(10)}, {"x", random.normal(10)}, {"rstd", {0.5, 2}}};
  Call<Backward<F64>> call({{"T", 2}, {"H", 5}}, in), in_place({{"T", 2}, {"H", 5}}, in);
  rms_norm::backward(call.args);
  in_place.args.dx.data = const_cast<double*>(in_place.args.dy.data);
  rms_norm::backward(in_place.args);
  EXPECT_EQ(in_place.get("dy"), call.get("dx"));
  EXPECT_EQ(in_place.get("dw"), call.get("dw"));
}

class RmsNormOptions : public testing::TestWithParam<std::tuple<bool, double>> {
 protected:
  const bool has_weight_ = std::get<0>(GetParam());
  Binding setting_{{"T", 4}, {"H", 7}, {"offset", std::get<1>(GetParam())}, {"eps", 0.01}};

  Values inputs(double size) {
    Random random(3);
    Values in{{"x", random.normal(28, size)}};
    if (has_weight_) in["w"] = random.normal(7);
    return in;
  }
  // Inputs of backward that follow from those of forward.
  Values backward_inputs(Values in) {
    in["rstd"] = run_forward(setting_, in).at("rstd");
    in["dy"] = Random(4).normal(28);
    return in;
  }
};

TEST_P(RmsNormOptions, BackwardIsDerivativeOfForward) {
  const Values in = inputs(1), back = backward_inputs(in);
  Call<Backward<F64>> call(setting_, back);
  rms_norm::backward(call.args);
  const Values upstream{{"y", back.at("dy")}};
  for (const char* variable : {"x", "w"})
    if (in.count(variable))
      expect_close(call.get("d" + std::string(variable)),
                   dual_gradient<Forward>(setting_, in, variable, upstream, kForward), 1e-12,
                   variable);
}

TEST_P(RmsNormOptions, WeightGradientMayBeLeftOut) {
  const Values back = backward_inputs(inputs(1));
  Call<Backward<F64>> call(setting_, back), without(setting_, back, {"dw"});
  rms_norm::backward(call.args);
  rms_norm::backward(without.args);
  EXPECT_EQ(call.get("dx"), without.get("dx"));
}

TEST_P(RmsNormOptions, ScaleBoundsFp32) {
  for (double size : {1e-3, 1.0, 100.0}) {
    const Values in = inputs(size), back = backward_inputs(in);
    Call<Forward<F64>> value(setting_, in), scale(setting_, in);
    Call<Forward<F32>> fp32(setting_, in);
    rms_norm::forward(value.args);
    rms_norm::forward_scale(scale.args);
    rms_norm::forward(fp32.args);
    for (const char* t : {"y", "rstd"})
      expect_scale(value.get(t), scale.get(t), as_double(fp32.get(t)), 7, 8, t);

    Call<Backward<F64>> dvalue(setting_, back), dscale(setting_, back);
    Call<Backward<F32>> dfp32(setting_, back);
    rms_norm::backward(dvalue.args);
    rms_norm::backward_scale(dscale.args);
    rms_norm::backward(dfp32.args);
    for (const char* t : {"dx", "dw"})
      expect_scale(dvalue.get(t), dscale.get(t), as_double(dfp32.get(t)), 7, 8, t);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RmsNormOptions,
                         testing::Combine(testing::Bool(), testing::Values(0.0, 1.0)));

}  // namespace
}  // namespace tigon::reference
