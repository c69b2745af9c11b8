// SPDX-License-Identifier: Apache-2.0
// Tests of softmax's oracle.
#include "reference/softmax.h"

#include "reference/tests/dual.h"

namespace tigon::reference {
namespace {

using softmax::Backward;
using softmax::Forward;
const auto kForward = [](const auto& a) { softmax::forward(a); };

std::vector<double> run_forward(const Binding& setting, const std::vector<double>& x) {
  Call<Forward<F64>> call(setting, {{"x", x}});
  softmax::forward(call.args);
  return call.get("y");
}

TEST(Softmax, HandComputedRow) {
  const double ln2 = std::log(2.0);
  expect_close(run_forward({{"T", 2}, {"V", 3}}, {0, ln2, -ln2, 500, 500, 500}),
               {2. / 7, 4. / 7, 1. / 7, 1. / 3, 1. / 3, 1. / 3}, 1e-15, "y");
}

TEST(Softmax, HandComputedGradient) {
  Call<Backward<F64>> call({{"T", 1}, {"V", 2}}, {{"y", {0.25, 0.75}}, {"dy", {4, 8}}});
  softmax::backward(call.args);
  expect_close(call.get("dx"), {-0.75, 0.75}, 1e-15, "dx");  // sum y dy = 7
}

// What torch.softmax gives.
TEST(Softmax, InfinitiesAndNaN) {
  const Binding row{{"T", 1}, {"V", 3}};
  expect_close(run_forward(row, {-kInf, 1, 1}), {0, 0.5, 0.5}, 1e-15, "masked");
  for (const std::vector<double>& x :
       {std::vector<double>{-kInf, -kInf, -kInf}, {kInf, 1, 1}, {kNaN, 1, -kInf}, {kInf, kInf, 0}})
    expect_close(run_forward(row, x), {kNaN, kNaN, kNaN}, 0, "y");
}

TEST(Softmax, NaNStaysInItsRow) {
  expect_close(run_forward({{"T", 2}, {"V", 2}}, {kNaN, 1, 3, 3}), {kNaN, kNaN, 0.5, 0.5}, 1e-15,
               "y");
}

TEST(Softmax, GradientInPlace) {
  Random random(2);
  const Values in{{"dy", random.normal(10)}, {"y", random.normal(10)}};
  for (const bool of_dy : {true, false}) {
    Call<Backward<F64>> call({{"T", 2}, {"V", 5}}, in), in_place({{"T", 2}, {"V", 5}}, in);
    softmax::backward(call.args);
    Backward<F64>& args = in_place.args;
    args.dx.data = const_cast<double*>(of_dy ? args.dy.data : args.y.data);
    softmax::backward(args);
    EXPECT_EQ(in_place.get(of_dy ? "dy" : "y"), call.get("dx"));
  }
}

class SoftmaxSizes : public testing::TestWithParam<double> {
 protected:
  const Binding setting_{{"T", 4}, {"V", 7}};
  // On a grid, so that fp32 has them exactly.
  std::vector<double> inputs() {
    std::vector<double> x = Random(3).normal(28, GetParam());
    for (double& v : x) v = std::round(v * 1024) / 1024;
    return x;
  }
};

TEST_P(SoftmaxSizes, BackwardIsDerivativeOfForward) {
  const std::vector<double> x = inputs(), dy = Random(4).normal(28);
  Call<Backward<F64>> call(setting_, {{"y", run_forward(setting_, x)}, {"dy", dy}});
  softmax::backward(call.args);
  expect_close(call.get("dx"),
               dual_gradient<Forward>(setting_, {{"x", x}}, "x", {{"y", dy}}, kForward), 1e-12,
               "dx");
}

TEST_P(SoftmaxSizes, ScaleBoundsFp32) {
  const Values in{{"x", inputs()}};
  Call<Forward<F64>> value(setting_, in), scale(setting_, in);
  Call<Forward<F32>> fp32(setting_, in);
  softmax::forward(value.args);
  softmax::forward_scale(scale.args);
  softmax::forward(fp32.args);
  expect_scale(value.get("y"), scale.get("y"), as_double(fp32.get("y")), 7, 16, "y");

  const Values back{{"y", as_double(fp32.get("y"))}, {"dy", in.at("x")}};
  Call<Backward<F64>> dvalue(setting_, back), dscale(setting_, back);
  Call<Backward<F32>> dfp32(setting_, back);
  softmax::backward(dvalue.args);
  softmax::backward_scale(dscale.args);
  softmax::backward(dfp32.args);
  expect_scale(dvalue.get("dx"), dscale.get("dx"), as_double(dfp32.get("dx")), 7, 8, "dx");
}

INSTANTIATE_TEST_SUITE_P(Sizes, SoftmaxSizes, testing::Values(1.0, 10.0));

}  // namespace
}  // namespace tigon::reference
