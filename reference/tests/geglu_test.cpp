// SPDX-License-Identifier: Apache-2.0
// Tests of geglu's oracle.
#include <Eigen/Core>
#include <cmath>
#include <unsupported/Eigen/AutoDiff>

namespace Eigen {

// AutoDiffScalar lacks it.
template <class D>
auto erfc(const AutoDiffScalar<D>& x) {
  using Scalar = AutoDiffScalar<Matrix<double, 1, 1>>;
  const double slope = -2 / std::sqrt(3.14159265358979323846) * std::exp(-x.value() * x.value());
  return Scalar(std::erfc(x.value()), Matrix<double, 1, 1>(slope * x.derivatives()[0]));
}

}  // namespace Eigen

#include "reference/geglu.h"
#include "reference/tests/dual.h"

namespace tigon::reference {
namespace {

using geglu::Backward;
using geglu::Forward;

TEST(GeGlu, HandComputedValues) {
  const double a = 0.75, u = std::sqrt(2 / 3.14159265358979323846) * (a + 0.044715 * a * a * a);
  const Values in{{"a", {a, 0, -a}}, {"b", {2, 5, 1}}};
  Call<Forward<F64>> by_tanh({{"T", 1}, {"F", 3}}, in);
  geglu::forward(by_tanh.args);
  const double gelu = 0.5 * a * (1 + std::tanh(u));
  expect_close(by_tanh.get("y"), {2 * gelu, 0, gelu - a}, 1e-15, "y");

  Call<Forward<F64>> by_erf({{"T", 1}, {"F", 3}, {"approximate", 1}}, in);
  geglu::forward(by_erf.args);
  const double exact = 0.5 * a * (1 + std::erf(a / std::sqrt(2)));
  expect_close(by_erf.get("y"), {2 * exact, 0, exact - a}, 1e-15, "y");
}

class GeGluOptions : public testing::TestWithParam<std::tuple<double, double>> {
 protected:
  const Binding setting_{{"T", 4},
                         {"F", 9},
                         {"approximate", std::get<0>(GetParam())},
                         {"gate_multiplier", 0.75},
                         {"down_multiplier", -3}};
  Values inputs() {
    Random random(2);
    return {{"a", random.normal(36, std::get<1>(GetParam()))}, {"b", random.normal(36)}};
  }
  Values backward_inputs() {
    Values in = inputs();
    in["dy"] = Random(3).normal(36);
    return in;
  }
};

TEST_P(GeGluOptions, FarFromZero) {
  const Values in{{"a", {-800, 800, kNaN, kInf}}, {"b", {1, 1, 1, 1}}, {"dy", {1, 1, 1, 1}}};
  Binding setting = setting_;
  setting["T"] = 1;
  setting["F"] = 4;
  setting["gate_multiplier"] = setting["down_multiplier"] = 1;
  Call<Forward<F64>> call(setting, in);
  geglu::forward(call.args);
  expect_close(call.get("y"), {0, 800, kNaN, kInf}, 1e-15, "y");
  Call<Backward<F64>> back(setting, in);
  geglu::backward(back.args);
  expect_close(back.get("da"), {0, 1, kNaN, 1}, 1e-15, "da");
  expect_close(back.get("db"), {0, 800, kNaN, kInf}, 1e-15, "db");
}

TEST_P(GeGluOptions, BackwardIsDerivativeOfForward) {
  const Values in = inputs(), back = backward_inputs();
  Call<Backward<F64>> call(setting_, back);
  geglu::backward(call.args);
  const auto run = [](const auto& a) { geglu::forward(a); };
  for (const char* variable : {"a", "b"})
    expect_close(call.get("d" + std::string(variable)),
                 dual_gradient<Forward>(setting_, in, variable, {{"y", back.at("dy")}}, run), 1e-12,
                 variable);
}

TEST_P(GeGluOptions, ScaleBoundsFp32) {
  const Values in = inputs(), back = backward_inputs();
  Call<Forward<F64>> value(setting_, in), scale(setting_, in);
  Call<Forward<F32>> fp32(setting_, in);
  geglu::forward(value.args);
  geglu::forward_scale(scale.args);
  geglu::forward(fp32.args);
  expect_scale(value.get("y"), scale.get("y"), as_double(fp32.get("y")), 1, 40, "y");

  Call<Backward<F64>> dvalue(setting_, back), dscale(setting_, back);
  Call<Backward<F32>> dfp32(setting_, back);
  geglu::backward(dvalue.args);
  geglu::backward_scale(dscale.args);
  geglu::backward(dfp32.args);
  for (const char* t : {"da", "db"})
    expect_scale(dvalue.get(t), dscale.get(t), as_double(dfp32.get(t)), 1, 40, t);
}

INSTANTIATE_TEST_SUITE_P(All, GeGluOptions,
                         testing::Combine(testing::Values(0.0, 1.0),
                                          testing::Values(0.5, 3.0, 20.0)));

}  // namespace
}  // namespace tigon::reference
