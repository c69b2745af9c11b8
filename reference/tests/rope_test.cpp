// Tests of rope's oracle.
#include "reference/rope.h"

#include "reference/tests/dual.h"

namespace tigon::reference {
namespace {

using rope::Backward;
using rope::Forward;

const Binding kSetting{{"T", 3}, {"Q", 4}, {"K", 2}, {"D", 6}};

Values inputs() {
  Random random(1);
  return {{"q", random.normal(72)},
          {"k", random.normal(36)},
          {"cos", random.normal(9)},
          {"sin", random.normal(9)}};
}

Values gradients() {
  Values in = inputs();
  return {{"dq", in["q"]}, {"dk", in["k"]}, {"cos", in["cos"]}, {"sin", in["sin"]}};
}

TEST(Rope, TurnsByAQuarter) {
  const Binding setting{{"T", 1}, {"Q", 1}, {"K", 1}, {"D", 4}};
  const Values in{{"q", {1, 2, 3, 4}}, {"k", {5, 6, 7, 8}}, {"cos", {0, 1}}, {"sin", {1, 0}}};
  Call<Forward<F64>> call(setting, in);
  rope::forward(call.args);
  expect_close(call.get("q"), {-3, 2, 1, 4}, 0, "q");
  expect_close(call.get("k"), {-7, 6, 5, 8}, 0, "k");
}

TEST(Rope, BackwardTurnsBack) {
  const Binding setting{{"T", 2}, {"Q", 1}, {"K", 1}, {"D", 2}};
  Values in{{"q", {1, 2, 3, 4}},
            {"k", {5, 6, 7, 8}},
            {"cos", {std::cos(0.3), std::cos(2.0)}},
            {"sin", {std::sin(0.3), std::sin(2.0)}}};
  Call<Forward<F64>> call(setting, in);
  rope::forward(call.args);
  Call<Backward<F64>> back(
      setting,
      {{"dq", call.get("q")}, {"dk", call.get("k")}, {"cos", in["cos"]}, {"sin", in["sin"]}});
  rope::backward(back.args);
  expect_close(back.get("dq"), in["q"], 1e-15, "dq");
  expect_close(back.get("dk"), in["k"], 1e-15, "dk");
}

TEST(Rope, BackwardIsDerivativeOfForward) {
  const Values back = gradients();
  Call<Backward<F64>> call(kSetting, back);
  rope::backward(call.args);
  for (const char* variable : {"q", "k"})
    expect_close(call.get("d" + std::string(variable)),
                 dual_gradient<Forward>(kSetting, inputs(), variable,
                                        {{"q", back.at("dq")}, {"k", back.at("dk")}},
                                        [](const auto& a) { rope::forward(a); }),
                 1e-12, variable);
}

TEST(Rope, ScaleBoundsFp32) {
  Call<Forward<F64>> value(kSetting, inputs()), scale(kSetting, inputs());
  Call<Forward<F32>> fp32(kSetting, inputs());
  rope::forward(value.args);
  rope::forward_scale(scale.args);
  rope::forward(fp32.args);
  for (const char* t : {"q", "k"})
    expect_scale(value.get(t), scale.get(t), as_double(fp32.get(t)), 1, 8, t);

  Call<Backward<F64>> dvalue(kSetting, gradients()), dscale(kSetting, gradients());
  Call<Backward<F32>> dfp32(kSetting, gradients());
  rope::backward(dvalue.args);
  rope::backward_scale(dscale.args);
  rope::backward(dfp32.args);
  for (const char* t : {"dq", "dk"})
    expect_scale(dvalue.get(t), dscale.get(t), as_double(dfp32.get(t)), 1, 8, t);
}

}  // namespace
}  // namespace tigon::reference
