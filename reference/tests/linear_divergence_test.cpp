// SPDX-License-Identifier: Apache-2.0
// Tests of linear_divergence's oracle, and of the derivatives that its scales are made of.
#include "reference/linear_divergence.h"

#include "reference/tests/dual.h"

namespace tigon::reference {
namespace {

using linear_divergence::Backward;
using linear_divergence::Forward;
using Kind = linear_divergence::Kind;
const auto kForward = [](const auto& a) { linear_divergence::forward(a); };
const auto kBackward = [](const auto& a) { linear_divergence::backward(a); };

constexpr int kTokens = 3, kWidth = 2, kTeacherWidth = 4, kColumns = 5;

Values inputs(uint64_t seed) {
  Random random(seed);
  return {{"x", random.normal(kTokens * kWidth)},
          {"w", random.normal(kColumns * kWidth)},
          {"bias", random.normal(kColumns)},
          {"teacher_x", random.normal(kTokens * kTeacherWidth)},
          {"teacher_w", random.normal(kColumns * kTeacherWidth)},
          {"teacher_bias", random.normal(kColumns)},
          {"target", {1, -100, 4}},
          {"dloss", {1.5, 7, -2}}};
}

// All of the layer, and where its gradients go.
Binding setting(Kind kind, double beta, double temperature) {
  return {{"T", kTokens},
          {"H", kWidth},
          {"G", kTeacherWidth},
          {"V", kColumns},
          {"bias", 1},
          {"teacher_bias", 1},
          {"dbias", 1},
          {"beta", beta},
          {"kind", static_cast<int>(kind)},
          {"ignore_index", -100},
          {"temperature", temperature}};
}
constexpr Kind kKinds[] = {Kind::kForwardKl, Kind::kReverseKl, Kind::kJsd};

void save(const Binding& s, Values* in) {
  Call<Forward<F64>> call(s, *in);
  linear_divergence::forward(call.args);
  for (const char* saved : {"lse", "teacher_lse", "slope"}) (*in)[saved] = call.get(saved);
}

TEST(LinearDivergence, GradientIsTheDerivative) {
  for (const Kind kind : kKinds)
    for (const double temperature : {0.5, 3.0}) {
      const Binding s = setting(kind, 0.25, temperature);
      Values in = inputs(3);
      const auto want = [&](const char* variable) {
        return dual_gradient<Forward>(s, in, variable, {{"loss", in.at("dloss")}}, kForward);
      };
      const auto dx = want("x"), dw = want("w"), dbias = want("bias");
      save(s, &in);
      Call<Backward<F64>> call(s, in);
      linear_divergence::backward(call.args);
      expect_close(call.get("dx"), dx, 1e-13, "dx");
      expect_close(call.get("dw"), dw, 1e-13, "dw");
      expect_close(call.get("dbias"), dbias, 1e-13, "dbias");
    }
}

// With one row, the derivative by a bias is that by the row's logit.
TEST(LinearDivergence, SensitivitiesAreDerivatives) {
  for (const Kind kind : kKinds) {
    Binding s = setting(kind, 0.25, 0.75);
    s["T"] = 1;
    Values in = inputs(5);
    in["x"].resize(kWidth);
    in["teacher_x"].resize(kTeacherWidth);
    in["target"] = {1};
    in["dloss"] = {1.5};
    Call<Forward<F64>> call(s, in);
    const auto z = linear_divergence::logits_of(call.args);
    const auto pair = divergence::summed_pair(linear_divergence::on_logits(call.args, z), 0);
    const auto of = linear_divergence::sensitivity(pair, s.at("temperature"));
    const auto expect = [&](const Row<double>& got, const char* output, const char* variable) {
      const auto want = dual_gradient<Forward>(s, in, variable, {{output, {1}}}, kForward);
      expect_close({got.begin(), got.end()}, want, 1e-13, output);
    };
    expect(of.lse, "lse", "bias");
    expect(of.teacher_lse, "teacher_lse", "teacher_bias");
    expect(of.loss_x, "loss", "bias");
    expect(of.loss_y, "loss", "teacher_bias");
    expect(of.slope_x, "slope", "bias");
    expect(of.slope_y, "slope", "teacher_bias");
  }
}

// An entry of the gradient moves with its own logits, and by no more than the scales say.
TEST(LinearDivergence, GradientSlopesAreBounds) {
  for (const Kind kind : kKinds) {
    Binding s = setting(kind, 0.25, 0.75);
    s["T"] = 1;
    Values in = inputs(7);
    in["x"].resize(kWidth);
    in["teacher_x"].resize(kTeacherWidth);
    in["target"] = {1};
    in["dloss"] = {1.5};
    save(s, &in);
    Call<Backward<F64>> call(s, in);
    const auto z = linear_divergence::logits_of(call.args);
    Rows<double> d(1, kColumns);
    const auto pair = divergence::saved_pair(linear_divergence::on_logits(call.args, z, d), 0);
    const auto by = linear_divergence::gradient_slope(call.args, pair, 0);
    for (size_t v = 0; v < kColumns; ++v) {
      std::vector<double> one(kColumns);
      one[v] = 1;
      for (const char* variable : {"bias", "teacher_bias"}) {
        const auto moved = dual_gradient<Backward>(s, in, variable, {{"dbias", one}}, kBackward);
        const Row<double>& bound = variable[0] == 'b' ? by.x : by.y;
        for (size_t other = 0; other < kColumns; ++other) {
          if (other != v) {
            EXPECT_EQ(moved[other], 0);
          }
        }
        EXPECT_LE(std::abs(moved[v]), bound[static_cast<int64_t>(v)] * (1 + 1e-12)) << variable;
        if (kind == Kind::kForwardKl) {
          EXPECT_GE(std::abs(moved[v]), bound[static_cast<int64_t>(v)] * (1 - 1e-12)) << variable;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tigon::reference
