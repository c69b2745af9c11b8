// SPDX-License-Identifier: Apache-2.0
// Tests of add_rms_norm's oracle.
#include "reference/add_rms_norm.h"

#include "reference/tests/dual.h"

namespace tigon::reference {
namespace {

using add_rms_norm::Backward;
using add_rms_norm::Forward;

TEST(AddRmsNorm, HandComputedRow) {
  Call<Forward<F64>> call({{"T", 1}, {"H", 2}, {"eps", 0}, {"offset", 1}},
                          {{"x", {1, 5}}, {"residual", {2, -1}}, {"w", {1, 2}}});
  add_rms_norm::forward(call.args);
  const double rstd = 1 / std::sqrt(12.5);
  expect_close(call.get("h"), {3, 4}, 0, "h");
  expect_close(call.get("rstd"), {rstd}, 1e-15, "rstd");
  expect_close(call.get("y"), {6 * rstd, 12 * rstd}, 1e-15, "y");
}

// The norm is that of what a reader of h finds.
TEST(AddRmsNorm, StatisticsAreOfTheRoundedSum) {
  const Values in{{"x", {256}}, {"residual", {0.75}}};
  for (const auto& [type, h] : {std::pair{DType::kBF16, 256.0}, {DType::kF16, 256.75}}) {
    Call<Forward<F64>> call({{"T", 1}, {"H", 1}, {"eps", 0}}, in);
    add_rms_norm::forward(call.args, type);
    expect_close(call.get("h"), {h}, 0, "h");
    expect_close(call.get("rstd"), {1 / h}, 1e-15, "rstd");
    expect_close(call.get("y"), {1}, 1e-15, "y");
  }
}

TEST(AddRmsNorm, RoundingIsThatOfTheStoredTypes) {
  EXPECT_EQ(rounded(1 + 0x1p-30, DType::kF64), 1 + 0x1p-30);
  EXPECT_EQ(rounded(1 + 0x1p-30, DType::kF32), 1);
  EXPECT_EQ(rounded(1 + 0x1.8p-8, DType::kBF16), 1 + 0x1p-7);
  EXPECT_EQ(rounded(1 + 0x1p-11, DType::kF16), 1) << "ties to even";
  EXPECT_EQ(rounded(65520.0, DType::kF16), kInf);
}

Values inputs() {
  Random random(5);
  return {{"x", random.normal(28)}, {"residual", random.normal(28)}, {"w", random.normal(7)}};
}

const Binding kSetting{{"T", 4}, {"H", 7}, {"offset", 0.5}, {"eps", 0.01}};

// dx and dh are the gradients of x and of the stored sum.
TEST(AddRmsNorm, BackwardIsDerivativeOfForward) {
  const Values in = inputs();
  Call<Forward<F64>> before(kSetting, in);
  add_rms_norm::forward(before.args);
  Random random(6);
  Values back{{"dy", random.normal(28)}, {"dh", random.normal(28)}, {"w", in.at("w")}};
  back["h"] = before.get("h");
  back["rstd"] = before.get("rstd");
  Call<Backward<F64>> call(kSetting, back);
  add_rms_norm::backward(call.args);
  const Values upstream{{"y", back.at("dy")}, {"h", back.at("dh")}};
  const auto forward = [](const auto& a) { add_rms_norm::forward(a); };
  const auto derivative = [&](const char* variable) {
    return dual_gradient<Forward>(kSetting, in, variable, upstream, forward);
  };
  expect_close(call.get("dx"), derivative("x"), 1e-12, "x");
  expect_close(call.get("dx"), derivative("residual"), 1e-12, "residual");
  expect_close(call.get("dw"), derivative("w"), 1e-12, "w");

  Call<Backward<F64>> in_place(kSetting, back);
  in_place.args.dx.data = const_cast<double*>(in_place.args.dh.data);
  add_rms_norm::backward(in_place.args);
  EXPECT_EQ(in_place.get("dh"), call.get("dx"));
}

TEST(AddRmsNorm, StreamGradientMayBeLeftOut) {
  const Values in = inputs();
  const Values back{{"dy", in.at("x")}, {"h", in.at("residual")}, {"rstd", {1, 2, 3, 4}}};
  Values with_zeros = back;
  with_zeros["dh"] = std::vector<double>(28);
  Call<Backward<F64>> without(kSetting, back, {"dh"}), zeros(kSetting, with_zeros);
  add_rms_norm::backward(without.args);
  add_rms_norm::backward(zeros.args);
  EXPECT_EQ(without.get("dx"), zeros.get("dx"));
}

TEST(AddRmsNorm, ScaleBoundsFp32) {
  const Values in = inputs();
  Call<Forward<F64>> value(kSetting, in), scale(kSetting, in);
  Call<Forward<F32>> fp32(kSetting, in);
  add_rms_norm::forward(value.args);
  add_rms_norm::forward_scale(scale.args, DType::kF64);
  add_rms_norm::forward(fp32.args);
  expect_scale(value.get("h"), scale.get("h"), as_double(fp32.get("h")), 1, 8, "h");
  Values back{{"dy", in.at("x")}, {"dh", in.at("residual")}, {"w", in.at("w")}};
  back["h"] = value.get("h");
  back["rstd"] = value.get("rstd");
  Call<Backward<F64>> dvalue(kSetting, back), dscale(kSetting, back);
  Call<Backward<F32>> dfp32(kSetting, back);
  add_rms_norm::backward(dvalue.args);
  add_rms_norm::backward_scale(dscale.args);
  add_rms_norm::backward(dfp32.args);
  for (const char* t : {"dx", "dw"})
    expect_scale(dvalue.get(t), dscale.get(t), as_double(dfp32.get(t)), 7, 8, t);
}

}  // namespace
}  // namespace tigon::reference
