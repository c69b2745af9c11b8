// SPDX-License-Identifier: Apache-2.0
// Tests of swiglu's oracle.
#include "reference/swiglu.h"

#include "reference/tests/dual.h"

namespace tigon::reference {
namespace {

using swiglu::Backward;
using swiglu::Forward;

TEST(SwiGlu, HandComputedValues) {
  const double a = std::log(3.0);  // sigmoid 3/4
  Call<Forward<F64>> call({{"T", 1}, {"F", 2}}, {{"a", {a, 0}}, {"b", {2, 5}}});
  swiglu::forward(call.args);
  expect_close(call.get("y"), {1.5 * a, 0}, 1e-15, "y");

  Call<Backward<F64>> back({{"T", 1}, {"F", 2}}, {{"dy", {1, 2}}, {"a", {a, 0}}, {"b", {2, 5}}});
  swiglu::backward(back.args);
  expect_close(back.get("da"), {2 * (0.75 + 0.75 * a * 0.25), 5}, 1e-15, "da");
  expect_close(back.get("db"), {0.75 * a, 0}, 1e-15, "db");
}

TEST(SwiGlu, FarFromZero) {
  const Values in{{"a", {-800, 800, kNaN}}, {"b", {1, 1, 1}}, {"dy", {1, 1, 1}}};
  Call<Forward<F64>> call({{"T", 1}, {"F", 3}}, in);
  swiglu::forward(call.args);
  expect_close(call.get("y"), {0, 800, kNaN}, 1e-15, "y");
  Call<Backward<F64>> back({{"T", 1}, {"F", 3}}, in);
  swiglu::backward(back.args);
  expect_close(back.get("da"), {0, 1, kNaN}, 1e-15, "da");
  expect_close(back.get("db"), {0, 800, kNaN}, 1e-15, "db");
}

TEST(SwiGlu, GradientInPlaceOfInputs) {
  Random random(1);
  const Values in{{"a", random.normal(6)}, {"b", random.normal(6)}, {"dy", random.normal(6)}};
  Call<Backward<F64>> call({{"T", 2}, {"F", 3}}, in), in_place({{"T", 2}, {"F", 3}}, in);
  swiglu::backward(call.args);
  in_place.args.da.data = const_cast<double*>(in_place.args.a.data);
  in_place.args.db.data = const_cast<double*>(in_place.args.b.data);
  swiglu::backward(in_place.args);
  EXPECT_EQ(in_place.get("a"), call.get("da"));
  EXPECT_EQ(in_place.get("b"), call.get("db"));
}

// The halves of packed rows, with b [T, 0].
TEST(SwiGlu, PackedIsSeparate) {
  Random random(4);
  const std::vector<double> a = random.normal(6), b = random.normal(6), dy = random.normal(6);
  Values packed{{"a", {}}, {"b", {}}, {"dy", dy}};
  Call<Backward<F64>> separate({{"T", 2}, {"F", 3}}, {{"a", a}, {"b", b}, {"dy", dy}});
  swiglu::backward(separate.args);
  for (const double layout : {1.0, 2.0}) {
    std::vector<double> want;
    packed["a"].clear();
    for (size_t row : {0, 3}) {
      const auto add = [&](const std::vector<double>& values, std::vector<double>* to) {
        for (size_t i = row; i < row + 3; ++i) to->push_back(values[i]);
      };
      add(layout == 1 ? a : b, &packed["a"]);
      add(layout == 1 ? b : a, &packed["a"]);
      add(separate.get(layout == 1 ? "da" : "db"), &want);
      add(separate.get(layout == 1 ? "db" : "da"), &want);
    }
    Call<Backward<F64>> call({{"T", 2}, {"F", 3}, {"layout", layout}}, packed);
    swiglu::backward(call.args);
    EXPECT_EQ(call.get("da"), want);
  }
}

class SwiGluSizes : public testing::TestWithParam<double> {
 protected:
  const Binding setting_{{"T", 4}, {"F", 9}, {"gate_multiplier", 0.75}, {"down_multiplier", -3}};
  Values inputs() {
    Random random(2);
    return {{"a", random.normal(36, GetParam())}, {"b", random.normal(36)}};
  }
  Values backward_inputs() {
    Values in = inputs();
    in["dy"] = Random(3).normal(36);
    return in;
  }
};

TEST_P(SwiGluSizes, BackwardIsDerivativeOfForward) {
  const Values in = inputs(), back = backward_inputs();
  Call<Backward<F64>> call(setting_, back);
  swiglu::backward(call.args);
  for (const char* variable : {"a", "b"})
    expect_close(call.get("d" + std::string(variable)),
                 dual_gradient<Forward>(setting_, in, variable, {{"y", back.at("dy")}},
                                        [](const auto& a) { swiglu::forward(a); }),
                 1e-12, variable);
}

TEST_P(SwiGluSizes, ScaleBoundsFp32) {
  const Values in = inputs(), back = backward_inputs();
  Call<Forward<F64>> value(setting_, in), scale(setting_, in);
  Call<Forward<F32>> fp32(setting_, in);
  swiglu::forward(value.args);
  swiglu::forward_scale(scale.args);
  swiglu::forward(fp32.args);
  expect_scale(value.get("y"), scale.get("y"), as_double(fp32.get("y")), 1, 40, "y");

  Call<Backward<F64>> dvalue(setting_, back), dscale(setting_, back);
  Call<Backward<F32>> dfp32(setting_, back);
  swiglu::backward(dvalue.args);
  swiglu::backward_scale(dscale.args);
  swiglu::backward(dfp32.args);
  for (const char* t : {"da", "db"})
    expect_scale(dvalue.get(t), dscale.get(t), as_double(dfp32.get(t)), 1, 40, t);
}

// 60: some are beyond -88, where exp(-a) overflows in fp32.
INSTANTIATE_TEST_SUITE_P(All, SwiGluSizes, testing::Values(0.01, 1.0, 8.0, 60.0));

}  // namespace
}  // namespace tigon::reference
