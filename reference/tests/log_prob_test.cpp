// SPDX-License-Identifier: Apache-2.0
// Tests of log_prob's oracle.
#include "reference/log_prob.h"

#include "reference/tests/dual.h"

namespace tigon::reference {
namespace {

using log_prob::Backward;
using log_prob::Forward;
const auto kForward = [](const auto& a) { log_prob::forward(a); };

const double kLn2 = std::log(2.0), kLn3 = std::log(3.0);

Values run_forward(Binding setting, const Values& in) {
  setting["entropy"] = 1;
  Call<Forward<F64>> call(setting, in);
  log_prob::forward(call.args);
  return {{"logp", call.get("logp")}, {"lse", call.get("lse")}, {"entropy", call.get("entropy")}};
}

// Backward on what forward saves.
std::vector<double> gradient(const Binding& setting, Values in) {
  const Values saved = run_forward(setting, in);
  in["lse"] = saved.at("lse");
  if (in.count("dentropy")) in["entropy"] = saved.at("entropy");
  Call<Backward<F64>> call(setting, in);
  log_prob::backward(call.args);
  return call.get("dlogits");
}

// Where the exponent's roundings exceed it, p may be 1 where the oracle has 0, as bf16 stores it.
TEST(LogProb, AProbabilityOfHugeLogitsMayBeAnythingUpToOneAsStored) {
  Row<double> z(2);
  z << 1e37, -1e37;
  const double budget = log_prob::probability_scale<double>(z, 1.001e37)[0] * 28 * 0x1p-24;
  EXPECT_GE(budget, 1 + 0x1p-8);
  EXPECT_LT(budget, 1.01);
}

TEST(LogProb, HandComputedRow) {
  const Values in{{"logits", {0, kLn3}}, {"target", {1}}};  // p = 1/4, 3/4
  const Values out = run_forward({{"T", 1}, {"V", 2}}, in);
  expect_close(out.at("logp"), {std::log(0.75)}, 1e-15, "logp");
  expect_close(out.at("lse"), {std::log(4.0)}, 1e-15, "lse");
  expect_close(out.at("entropy"), {std::log(4.0) - 0.75 * kLn3}, 1e-15, "entropy");
}

TEST(LogProb, HandComputedGradient) {
  Values in{{"logits", {0, kLn3}}, {"target", {1}}, {"dlogp", {8}}};
  const Binding row{{"T", 1}, {"V", 2}};
  expect_close(gradient(row, in), {-2, 2}, 1e-15, "of logp");
  // -p (log p + H) = -p_0 p_1 (x_i - x_other)
  in["dlogp"] = {0};
  in["dentropy"] = {16};
  expect_close(gradient(row, in), {3 * kLn3, -3 * kLn3}, 1e-14, "of the entropy");
}

TEST(LogProb, TemperatureDividesTheLogits) {
  const Values in{{"logits", {0, kLn3}}, {"target", {0}}, {"dlogp", {1}}};
  const Binding half{{"T", 1}, {"V", 2}, {"temperature", 0.5}};  // p = 1/10, 9/10
  expect_close(run_forward(half, in).at("logp"), {-std::log(10.0)}, 1e-15, "logp");
  expect_close(gradient(half, in), {1.8, -1.8}, 1e-15, "gradient");
}

TEST(LogProb, OneColumnDominates) {
  const Values in{{"logits", {1000, 0, -1000}}, {"target", {0}}, {"dlogp", {1}}, {"dentropy", {1}}};
  const Binding row{{"T", 1}, {"V", 3}};
  const Values out = run_forward(row, in);
  expect_close(out.at("logp"), {0}, 0, "logp");
  expect_close(out.at("entropy"), {0}, 0, "entropy");
  expect_close(gradient(row, in), {0, 0, 0}, 0, "gradient");
}

TEST(LogProb, OneColumn) {
  const Values in{{"logits", {7}}, {"target", {0}}, {"dlogp", {3}}, {"dentropy", {2}}};
  const Binding row{{"T", 1}, {"V", 1}};
  expect_close(run_forward(row, in).at("logp"), {0}, 0, "logp");
  expect_close(gradient(row, in), {0}, 0, "gradient");
}

TEST(LogProb, MaskedColumnsTakeNoPart) {
  // As many as Eigen's exp takes at once.
  std::vector<double> logits(16, -kInf), expected(16, 0);
  logits[0] = logits[1] = 3;
  expected[0] = 0.5;
  expected[1] = -0.5;
  const Values in{{"logits", logits}, {"target", {0}}, {"dlogp", {1}}, {"dentropy", {1}}};
  const Binding row{{"T", 1}, {"V", 16}};
  expect_close(run_forward(row, in).at("entropy"), {kLn2}, 1e-15, "entropy");
  expect_close(gradient(row, in), expected, 1e-15, "gradient");
  Values masked = in;
  masked["target"] = {5};
  expect_close(run_forward(row, masked).at("logp"), {-kInf}, 0, "logp of a masked target");
}

TEST(LogProb, RowsThatAreNaN) {
  const Binding row{{"T", 1}, {"V", 2}};
  for (const std::vector<double>& logits :
       {std::vector<double>{-kInf, -kInf}, {kInf, 1}, {kNaN, 1}, {kInf, kInf}}) {
    const Values in{{"logits", logits}, {"target", {1}}, {"dlogp", {1}}, {"dentropy", {1}}};
    expect_close(run_forward(row, in).at("logp"), {kNaN}, 0, "logp");
    expect_close(run_forward(row, in).at("entropy"), {kNaN}, 0, "entropy");
    expect_close(gradient(row, in), {kNaN, kNaN}, 0, "gradient");
  }
}

TEST(LogProb, IgnoredRowsAreZero) {
  const Values in{{"logits", {kNaN, kInf, 0, 0}},
                  {"target", {-100, 1}},
                  {"dlogp", {kNaN, 2}},
                  {"dentropy", {kNaN, 0}}};
  const Binding rows{{"T", 2}, {"V", 2}};
  const Values out = run_forward(rows, in);
  expect_close(out.at("logp"), {0, -kLn2}, 1e-15, "logp");
  expect_close(out.at("lse"), {0, kLn2}, 1e-15, "lse");
  expect_close(out.at("entropy"), {0, kLn2}, 1e-15, "entropy");
  expect_close(gradient(rows, in), {0, 0, -1, 1}, 1e-15, "gradient");
}

TEST(LogProb, InvalidTargetPoisonsItsRow) {
  for (const double bad : {-1.0, 2.0, -101.0}) {
    const Values in{{"logits", {0, 0, 0, 0}}, {"target", {bad, 0}}, {"dlogp", {1, 2}}};
    const Binding rows{{"T", 2}, {"V", 2}};
    const Values out = run_forward(rows, in);
    expect_close(out.at("logp"), {kNaN, -kLn2}, 1e-15, "logp");
    expect_close(out.at("entropy"), {kLn2, kLn2}, 1e-15, "entropy");
    expect_close(gradient(rows, in), {kNaN, kNaN, 1, -1}, 1e-15, "gradient");
  }
}

TEST(LogProb, GradientInPlace) {
  Random random(2);
  const Binding rows{{"T", 2}, {"V", 5}};
  const Values in{
      {"logits", random.normal(10)}, {"target", {4, 0}},    {"lse", {2, 1.5}}, {"dlogp", {1, -2}},
      {"dentropy", {0.5, -1}},       {"entropy", {1, 1.25}}};
  Call<Backward<F64>> call(rows, in), in_place(rows, in);
  log_prob::backward(call.args);
  in_place.args.dlogits.data = const_cast<double*>(in_place.args.logits.data);
  log_prob::backward(in_place.args);
  EXPECT_EQ(in_place.get("logits"), call.get("dlogits"));
}

TEST(LogProb, HandComputedScale) {
  const Values in{{"logits", {-1, 2}}, {"target", {0}}, {"lse", {5}}, {"dlogp", {-2}}};
  const Binding row{{"T", 1}, {"V", 2}, {"temperature", 0.5}};
  Call<Backward<F64>> call(row, in);
  log_prob::backward_scale(call.args);
  const double p0 = std::exp(-7) * (1 + (4.25 * 2 + 2.25 * 5) / 28);
  const double p1 = std::exp(-1) * (1 + (4.25 * 4 + 2.25 * 5) / 28);
  expect_close(call.get("dlogits"), {2 * 2 * (p0 + 1), 2 * 2 * p1}, 1e-14, "S");
}

TEST(LogProb, AnLseThatWasRoundedDownMakesNoProbabilityAboveOne) {
  const Values in{{"logits", {2}}, {"target", {0}}, {"lse", {1.5}}, {"dlogp", {3}}};
  Call<Backward<F64>> call({{"T", 1}, {"V", 1}}, in);
  log_prob::backward(call.args);
  EXPECT_EQ(call.get("dlogits")[0], 0);
}

class LogProbTemperature : public testing::TestWithParam<double> {
 protected:
  static constexpr int64_t kT = 4, kV = 6;
  const Binding setting_ = {{"T", kT}, {"V", kV}, {"temperature", GetParam()}, {"ignore_index", 2}};
  const double scale_ = std::min(2.0, 8 * GetParam());

  Values inputs(double size, double offset) {
    Random random(5);
    Values in{{"logits", random.normal(kT * kV, size * scale_)},
              {"target", random.targets(kT, kV, 2)},
              {"dlogp", random.normal(kT)},
              {"dentropy", random.normal(kT)}};
    for (double& x : in["logits"]) x += offset;
    return in;
  }
};

TEST_P(LogProbTemperature, BackwardIsDerivativeOfForward) {
  const Values in = inputs(1, 0);
  Binding with_entropy = setting_;
  with_entropy["entropy"] = 1;
  const Values upstream{{"logp", in.at("dlogp")}, {"entropy", in.at("dentropy")}};
  const Values forward{{"logits", in.at("logits")}, {"target", in.at("target")}};
  expect_close(gradient(setting_, in),
               dual_gradient<Forward>(with_entropy, forward, "logits", upstream, kForward), 1e-12,
               "gradient");
}

TEST_P(LogProbTemperature, ScaleBoundsFp32) {
  for (const auto& [size, offset] : {std::pair{1.0, 0.0}, {3.0, 0.0}, {2.0, 200.0}}) {
    Values in = inputs(size, offset);
    const Values value = run_forward(setting_, in);
    Binding with_entropy = setting_;
    with_entropy["entropy"] = 1;
    Call<Forward<F64>> scale(with_entropy, in);
    Call<Forward<F32>> fp32(with_entropy, in);
    log_prob::forward_scale(scale.args);
    log_prob::forward(fp32.args);
    for (const char* t : {"logp", "lse", "entropy"})
      expect_budget(value.at(t), scale.get(t), as_double(fp32.get(t)), row_sum_terms(kV), 16, t);
    for (const char* saved : {"lse", "entropy"}) {
      in[saved] = value.at(saved);
      for (double& v : in[saved]) v = static_cast<float>(v);
    }
    Call<Backward<F64>> exact(setting_, in), backward_scale(setting_, in);
    Call<Backward<F32>> backward_fp32(setting_, in);
    log_prob::backward(exact.args);
    log_prob::backward_scale(backward_scale.args);
    log_prob::backward(backward_fp32.args);
    expect_scale(exact.get("dlogits"), backward_scale.get("dlogits"),
                 as_double(backward_fp32.get("dlogits")), 1, 24, "dlogits");
  }
}

INSTANTIATE_TEST_SUITE_P(All, LogProbTemperature, testing::Values(1.0, 0.7, 0.01, 100.0));

}  // namespace
}  // namespace tigon::reference
