// SPDX-License-Identifier: Apache-2.0
// Tests of linear_policy's oracle.
#include "reference/linear_policy.h"

#include "reference/tests/dual.h"

namespace tigon::reference {
namespace {

using linear_policy::Forward;
using linear_policy::ForwardBackward;

const double kLn2 = std::log(2.0);

// Two classes of probability 1/2, of which the policy drew the first: logp = -log 2, ratio 1/2 over
// an old policy that was certain, 4 over one that had 1/8.
Values token(double advantage, double ratio) {
  return {{"x", {1}},
          {"w", {0, 0}},
          {"target", {0}},
          {"advantage", {advantage}},
          {"old_logp", {-kLn2 - std::log(ratio)}}};
}

struct OfToken {
  double loss, clipped, slope;
};
OfToken run(double advantage, double ratio, Binding options = {}) {
  options.insert({{"T", 1}, {"H", 1}, {"V", 2}, {"clipped", 1}, {"dbias", 1}});
  Call<ForwardBackward<F64>> call(options, token(advantage, ratio));
  linear_policy::forward_backward(call.args);
  return {call.get("loss")[0], call.get("clipped")[0], 2 * call.get("dbias")[0]};
}
void expect_token(const OfToken& got, double loss, double slope, bool clipped) {
  EXPECT_NEAR(got.loss, loss, 1e-6);  // the options are fp32
  EXPECT_NEAR(got.slope, slope, 1e-6);
  EXPECT_EQ(got.clipped, clipped ? 1 : 0);
}

TEST(LinearPolicy, ClipsGoodTokensAboveAndBadOnesBelow) {
  expect_token(run(3, 1.1), -3.3, -3.3, false);
  expect_token(run(3, 0.5), -1.5, -1.5, false);
  expect_token(run(3, 4), -3.6, 0, true);
  expect_token(run(-3, 1.1), 3.3, 3.3, false);
  expect_token(run(-3, 0.5), 2.4, 0, true);
  expect_token(run(-3, 4), 12, 12, false);
}

TEST(LinearPolicy, DeltaBoundsBadTokensAbove) {
  expect_token(run(-3, 4, {{"delta", 3}}), 9, 0, true);
  expect_token(run(-3, 2, {{"delta", 3}}), 6, 6, false);
  expect_token(run(3, 1.1, {{"delta", 3}}), -3.3, -3.3, false);
}

TEST(LinearPolicy, CispoCapsTheRatioThatIsNoVariable) {
  const Binding cispo{{"objective", 1}, {"clip_high", 2}};
  expect_token(run(3, 1.5, cispo), 4.5 * kLn2, -4.5, false);
  expect_token(run(3, 4, cispo), 6 * kLn2, -6, true);
  expect_token(run(-3, 4, cispo), -6 * kLn2, 6, true);
}

TEST(LinearPolicy, SapoGatesSoftly) {
  // The sigmoid of 0 is 1/2, with slope 1/4.
  expect_token(run(3, 1, {{"objective", 2}}), -6, -3, false);
  expect_token(run(-3, 1, {{"objective", 2}}), 6 / 1.05, 3, false);
}

TEST(LinearPolicy, WithoutAnOldPolicyTheRatioIsOneAndMoves) {
  Values in = token(3, 1);
  in.erase("old_logp");
  Call<ForwardBackward<F64>> call({{"T", 1}, {"H", 1}, {"V", 2}, {"dbias", 1}}, in);
  linear_policy::forward_backward(call.args);
  expect_close(call.get("loss"), {-3}, 1e-15, "loss");
  expect_close(call.get("dbias"), {-1.5, 1.5}, 1e-15, "dbias");
}

TEST(LinearPolicy, DivergenceFromTheReference) {
  Values in = token(0, 1);
  in["ref_logp"] = {kLn2 - kLn2};  // twice as probable
  Call<ForwardBackward<F64>> call(
      {{"T", 1}, {"H", 1}, {"V", 2}, {"kl", 1}, {"kl_weight", 0.5}, {"dbias", 1}}, in);
  linear_policy::forward_backward(call.args);
  expect_close(call.get("kl"), {1 - kLn2}, 1e-15, "kl");
  expect_close(call.get("loss"), {(1 - kLn2) / 2}, 1e-15, "loss");
  expect_close(call.get("dbias"), {-0.25, 0.25}, 1e-15, "dbias");
}

TEST(LinearPolicy, MoreRowsThanPromisedGiveNaN) {
  const Values in{{"x", {1, 2}}, {"w", {1, 1}}, {"target", {0, -100}}, {"advantage", {1, 1}}};
  Call<ForwardBackward<F64>> call({{"T", 2}, {"H", 1}, {"V", 2}, {"max_valid_rows", 0}}, in);
  linear_policy::forward_backward(call.args);
  for (const char* name : {"loss", "dx", "dw"})
    expect_close(call.get(name), std::vector<double>(call.get(name).size(), kNaN), 0, name);
}

TEST(LinearPolicy, AllRowsIgnored) {
  const Values in{{"x", {1, 2}}, {"w", {1, 1}}, {"target", {-100, -100}}, {"advantage", {1, 1}}};
  Call<ForwardBackward<F64>> call({{"T", 2}, {"H", 1}, {"V", 2}}, in);
  linear_policy::forward_backward(call.args);
  for (const char* name : {"loss", "dx", "dw"})
    expect_close(call.get(name), std::vector<double>(call.get(name).size(), 0), 0, name);
}

// Of objectives that are derived as they stand: cispo is not.
class LinearPolicyDerivative : public testing::TestWithParam<Binding> {
 protected:
  static constexpr int64_t kT = 6, kH = 3, kV = 5;
  Binding setting() const {
    Binding s{{"T", kT},
              {"H", kH},
              {"V", kV},
              {"ignore_index", 2},
              {"temperature", 0.5},
              {"kl_weight", 0.25},
              {"dbias", 1},
              {"importance_cap", 1.5}};
    for (const auto& [name, value] : GetParam()) s[name] = value;
    return s;
  }
  Values inputs() const {
    Random random(8);
    const auto near = [&] {
      std::vector<double> logp = random.normal(kT, 0.5);
      for (double& v : logp) v -= 1.5;
      return logp;
    };
    const size_t losses = setting().count("reduction") && setting()["reduction"] == 2 ? kT : 1;
    return {{"x", random.normal(kT * kH)},
            {"w", random.normal(kV * kH, 0.5)},
            {"bias", random.normal(kV)},
            {"target", random.targets(kT, kV, 2)},
            {"advantage", random.normal(kT)},
            {"old_logp", near()},
            {"ref_logp", near()},
            {"sampling_logp", near()},
            {"dloss", random.normal(int64_t(losses))}};
  }
};

TEST_P(LinearPolicyDerivative, GradientIsDerivativeOfTheLoss) {
  const Values in = inputs();
  Call<ForwardBackward<F64>> call(setting(), in);
  linear_policy::forward_backward(call.args);
  for (const char* variable : {"x", "w", "bias"})
    expect_close(call.get("d" + std::string(variable)),
                 dual_gradient<Forward>(setting(), in, variable, {{"loss", in.at("dloss")}},
                                        [](const auto& a) { linear_policy::forward(a); }),
                 1e-11, variable);
}

INSTANTIATE_TEST_SUITE_P(All, LinearPolicyDerivative,
                         testing::Values(Binding{}, Binding{{"reduction", 1}},
                                         Binding{{"reduction", 2}}, Binding{{"delta", 1.5}},
                                         Binding{{"objective", 2}}));

}  // namespace
}  // namespace tigon::reference
