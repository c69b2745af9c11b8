// SPDX-License-Identifier: Apache-2.0
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

TEST(Rope, TurnsNeighboursWhenInterleaved) {
  const Binding setting{{"T", 1}, {"Q", 1}, {"K", 1}, {"D", 4}, {"pairing", 1}};
  const Values in{{"q", {1, 2, 3, 4}}, {"k", {5, 6, 7, 8}}, {"cos", {0, 1}}, {"sin", {1, 0}}};
  Call<Forward<F64>> call(setting, in);
  rope::forward(call.args);
  expect_close(call.get("q"), {-2, 1, 3, 4}, 0, "q");
  expect_close(call.get("k"), {-6, 5, 7, 8}, 0, "k");
}

TEST(Rope, TurnsTheFirstColumnsOnlyAndElsewhere) {
  const Binding setting{{"T", 1}, {"Q", 1}, {"K", 1}, {"D", 4}, {"rotary", 2}, {"q_out", 1}};
  const Values in{{"q", {1, 2, 3, 4}}, {"k", {5, 6, 7, 8}}, {"cos", {0}}, {"sin", {1}}};
  Call<Forward<F64>> call(setting, in);
  rope::forward(call.args);
  expect_close(call.get("q"), {1, 2, 3, 4}, 0, "q");
  expect_close(call.get("q_out"), {-2, 1, 3, 4}, 0, "q_out");
  expect_close(call.get("k"), {-6, 5, 7, 8}, 0, "k");
}

TEST(Rope, PositionsChooseRows) {
  const Binding setting{{"T", 3}, {"Q", 1}, {"K", 1}, {"D", 2}};
  const Values in{{"q", {1, 2, 3, 4, 5, 6}},
                  {"k", {1, 2, 3, 4, 5, 6}},
                  {"cos", {1, 0, -1}},
                  {"sin", {0, 1, 0}},
                  {"positions", {2, 3, 1}}};
  Call<Forward<F64>> call(setting, in);
  rope::forward(call.args);
  expect_close(call.get("q"), {-1, -2, kNaN, kNaN, -6, 5}, 0, "q");
}

// A letter per pair: time, height, width.
std::string sections(int64_t half, int height, int width, rope::Sections kind) {
  rope::Options o;
  o.height = height;
  o.width = width;
  o.sections = kind;
  std::string letters;
  for (int64_t j = 0; j < half; ++j)
    letters += "thw"[static_cast<size_t>(rope::section_of(j, half, o))];
  return letters;
}

TEST(Rope, SectionsAreThoseOfQwen) {
  // mrope_section [16, 24, 24] of Qwen2-VL; slices 1 : 3 * 20 : 3 and 2 : 3 * 20 : 3 of Qwen3-VL.
  EXPECT_EQ(sections(64, 24, 24, rope::Sections::kChunked),
            std::string(16, 't') + std::string(24, 'h') + std::string(24, 'w'));
  std::string thirds;
  for (int i = 0; i < 20; ++i) thirds += "thw";
  EXPECT_EQ(sections(64, 20, 20, rope::Sections::kInterleaved), thirds + "tttt");
  EXPECT_EQ(sections(8, 1, 2, rope::Sections::kInterleaved), "thwttwtt");
}

TEST(Rope, SectionsChooseAmongThreePositions) {
  const Binding setting{{"T", 1}, {"Q", 1}, {"K", 1}, {"D", 6}, {"height", 1}, {"width", 1}};
  const Values in{{"q", {1, 2, 3, 0, 0, 0}},
                  {"k", {1, 1, 1, 0, 0, 0}},
                  {"cos", {10, 20, 30}},
                  {"sin", {0, 0, 0}},
                  {"positions", {0, 0, 1}}};
  Call<Forward<F64>> call(setting, in);
  rope::forward(call.args);
  expect_close(call.get("q"), {10, 40, kNaN, 0, 0, kNaN}, 0, "q");
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
