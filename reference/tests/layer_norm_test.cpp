// SPDX-License-Identifier: Apache-2.0
// Tests of layer_norm's oracle.
#include "reference/layer_norm.h"

#include "reference/tests/dual.h"

namespace tigon::reference {
namespace {

using layer_norm::Backward;
using layer_norm::Forward;
const auto kForward = [](const auto& a) { layer_norm::forward(a); };

Values run_forward(const Binding& setting, const Values& in) {
  Call<Forward<F64>> call(setting, in);
  layer_norm::forward(call.args);
  return {{"y", call.get("y")}, {"mean", call.get("mean")}, {"rstd", call.get("rstd")}};
}

TEST(LayerNorm, HandComputedRow) {
  const Values in{{"x", {1, 5}}, {"w", {1, 2}}, {"b", {10, 20}}};
  const Values out = run_forward({{"T", 1}, {"H", 2}, {"eps", 0}}, in);
  expect_close(out.at("mean"), {3}, 1e-15, "mean");
  expect_close(out.at("rstd"), {0.5}, 1e-15, "rstd");
  expect_close(out.at("y"), {9, 22}, 1e-15, "y");
}

TEST(LayerNorm, HandComputedGradient) {
  Call<Backward<F64>> call(
      {{"T", 1}, {"H", 2}},
      {{"dy", {1, 0}}, {"x", {1, 5}}, {"w", {4, 7}}, {"mean", {3}}, {"rstd", {0.5}}});
  layer_norm::backward(call.args);
  // m = (4, 0), x_hat = (-1, 1): mean(m) = 2, mean(m x_hat) = -2.
  expect_close(call.get("dx"), {0, 0}, 1e-15, "dx");
  expect_close(call.get("dw"), {-1, 0}, 1e-15, "dw");
  expect_close(call.get("db"), {1, 0}, 1e-15, "db");
}

TEST(LayerNorm, EqualRowIsItsBias) {
  const Values out = run_forward({{"T", 1}, {"H", 3}, {"eps", 0x1p-20}},
                                 {{"x", {7, 7, 7}}, {"w", {1, 2, 3}}, {"b", {4, 5, 6}}});
  expect_close(out.at("y"), {4, 5, 6}, 0, "y");
  expect_close(out.at("rstd"), {1024}, 1e-15, "rstd");
}

TEST(LayerNorm, AMeanIsJudgedByItsSpreadWhereOneElementHasIt) {
  Row<double> one = Row<double>::Zero(10000);
  one[17] = -3;
  EXPECT_NEAR(layer_norm::mean_scale<double>(one), 3 / 100.0 / 8, 1e-6);
  const std::vector<double> values = Random(3).normal(10000);
  const Row<double> normal = Eigen::Map<const Row<double>>(values.data(), std::ssize(values));
  EXPECT_EQ(layer_norm::mean_scale<double>(normal), normal.abs().mean());
  EXPECT_EQ(layer_norm::mean_scale<double>(normal + 100), (normal + 100).abs().mean());
}

TEST(LayerNorm, NaNStaysInItsRow) {
  const Values out = run_forward({{"T", 2}, {"H", 2}, {"eps", 0}}, {{"x", {kNaN, 1, -1, 1}}});
  expect_close(out.at("y"), {kNaN, kNaN, -1, 1}, 1e-15, "y");
}

TEST(LayerNorm, GradientInPlaceOfDy) {
  Random random(2);
  const Values in{{"dy", random.normal(10)},
                  {"x", random.normal(10)},
                  {"mean", {0.25, -1}},
                  {"rstd", {0.5, 2}}};
  Call<Backward<F64>> call({{"T", 2}, {"H", 5}}, in), in_place({{"T", 2}, {"H", 5}}, in);
  layer_norm::backward(call.args);
  in_place.args.dx.data = const_cast<double*>(in_place.args.dy.data);
  layer_norm::backward(in_place.args);
  EXPECT_EQ(in_place.get("dy"), call.get("dx"));
  EXPECT_EQ(in_place.get("dw"), call.get("dw"));
  EXPECT_EQ(in_place.get("db"), call.get("db"));
}

class LayerNormSizes : public testing::TestWithParam<double> {
 protected:
  const Binding setting_{{"T", 4}, {"H", 7}, {"eps", 0.01}};
  // Rows around `GetParam()`; on a grid, so that fp32 has them exactly.
  Values inputs() {
    Random random(3);
    Values in{{"x", random.normal(28)}, {"w", random.normal(7)}, {"b", random.normal(7)}};
    for (double& x : in["x"]) x = std::round((x + GetParam()) * 1024) / 1024;
    return in;
  }
  // Inputs of backward that follow from those of forward.
  Values backward_inputs(Values in) {
    const Values out = run_forward(setting_, in);
    in["mean"] = out.at("mean");
    in["rstd"] = out.at("rstd");
    in["dy"] = Random(4).normal(28);
    in.erase("b");
    return in;
  }
};

TEST_P(LayerNormSizes, BackwardIsDerivativeOfForward) {
  const Values in = inputs(), back = backward_inputs(in);
  Call<Backward<F64>> call(setting_, back);
  layer_norm::backward(call.args);
  const Values upstream{{"y", back.at("dy")}};
  for (const char* variable : {"x", "w", "b"})
    expect_close(call.get("d" + std::string(variable)),
                 dual_gradient<Forward>(setting_, in, variable, upstream, kForward), 1e-11,
                 variable);
}

TEST_P(LayerNormSizes, ScaleBoundsFp32) {
  const Values in = inputs(), back = backward_inputs(in);
  Call<Forward<F64>> value(setting_, in), scale(setting_, in);
  Call<Forward<F32>> fp32(setting_, in);
  layer_norm::forward(value.args);
  layer_norm::forward_scale(scale.args);
  layer_norm::forward(fp32.args);
  for (const char* t : {"y", "mean", "rstd"})
    expect_scale(value.get(t), scale.get(t), as_double(fp32.get(t)), 7, 10, t);

  Call<Backward<F64>> dvalue(setting_, back), dscale(setting_, back);
  Call<Backward<F32>> dfp32(setting_, back);
  layer_norm::backward(dvalue.args);
  layer_norm::backward_scale(dscale.args);
  layer_norm::backward(dfp32.args);
  for (const char* t : {"dx", "dw", "db"})
    expect_scale(dvalue.get(t), dscale.get(t), as_double(dfp32.get(t)), 7, 10, t);
}

INSTANTIATE_TEST_SUITE_P(Offsets, LayerNormSizes, testing::Values(0.0, 1.0, 100.0));

}  // namespace
}  // namespace tigon::reference
