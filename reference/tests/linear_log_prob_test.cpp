// SPDX-License-Identifier: Apache-2.0
// Tests of linear_log_prob's oracle.
#include "reference/linear_log_prob.h"

#include "reference/tests/dual.h"

namespace tigon::reference {
namespace {

using linear_log_prob::Backward;
using linear_log_prob::Forward;

const auto kForward = [](const auto& a) { linear_log_prob::forward(a); };
const auto kBackward = [](const auto& a) { linear_log_prob::backward(a); };
const auto kForwardIntermediate = [](const auto& a) { linear_log_prob::forward_intermediate(a); };
const auto kBackwardIntermediate = [](const auto& a) { linear_log_prob::backward_intermediate(a); };

template <class Pass>
Values results(Binding setting, const Values& in, const Pass& pass) {
  setting["entropy"] = 1;
  Call<Forward<F64>> call(setting, in);
  pass(call.args);
  return {{"logp", call.get("logp")}, {"lse", call.get("lse")}, {"entropy", call.get("entropy")}};
}

// On what the oracle's forward saves.
Values with_saved(const Binding& setting, Values in) {
  const Values saved = results(setting, in, kForward);
  in["lse"] = saved.at("lse");
  if (in.count("dentropy")) in["entropy"] = saved.at("entropy");
  return in;
}

template <class Pass>
Values gradients(const Binding& setting, const Values& in, const Pass& pass) {
  Call<Backward<F64>> call(setting, in);
  pass(call.args);
  Values out{{"dx", call.get("dx")}, {"dw", call.get("dw")}};
  if (setting.count("dbias")) out["dbias"] = call.get("dbias");
  return out;
}

const double kLn3 = std::log(3.0);

TEST(LinearLogProb, HandComputed) {
  // logits (0, log 3), so p = (1/4, 3/4) and dlogits = 8 (-1/4, 1/4)
  const Binding row{{"T", 1}, {"H", 2}, {"V", 2}};
  const Values in{{"x", {1, 2}}, {"w", {0, 0, kLn3, 0}}, {"target", {1}}, {"dlogp", {8}}};
  const Values out = results(row, in, kForward);
  expect_close(out.at("logp"), {std::log(0.75)}, 1e-15, "logp");
  expect_close(out.at("lse"), {std::log(4.0)}, 1e-15, "lse");
  expect_close(out.at("entropy"), {std::log(4.0) - 0.75 * kLn3}, 1e-15, "entropy");
  const Values d = gradients(row, with_saved(row, in), kBackward);
  expect_close(d.at("dx"), {2 * kLn3, 0}, 1e-15, "dx");
  expect_close(d.at("dw"), {-2, -4, 2, 4}, 1e-15, "dw");
}

// The same logits from a bias, twice as large over a temperature of 2, and dw added.
TEST(LinearLogProb, HandComputedBiasTemperatureAndSum) {
  const Binding row{{"T", 1}, {"H", 2}, {"V", 2}, {"temperature", 2}, {"dbias", 1}};
  Values in{{"x", {1, 2}},   {"w", {0, 0, 0, 0}}, {"bias", {0, 2 * kLn3}},
            {"target", {1}}, {"dlogp", {16}},     {"dw_accum", {1, 1, 1, 1}}};
  expect_close(results(row, in, kForward).at("logp"), {std::log(0.75)}, 1e-15, "logp");
  Call<Backward<F64>> call(row, with_saved(row, in), {"dw"});
  linear_log_prob::backward(call.args);
  expect_close(call.get("dbias"), {-2, 2}, 1e-15, "dbias");
  expect_close(call.get("dw_accum"), {-1, -3, 3, 5}, 1e-15, "dw");
}

TEST(LinearLogProb, MoreRowsThanPromisedGiveNaN) {
  const Values in{{"x", {1, 2}}, {"w", {1, 1}}, {"target", {0, -100}}, {"dlogp", {1, 1}}};
  const Binding one{{"T", 2}, {"H", 1}, {"V", 2}, {"max_valid_rows", 1}};
  Binding none = one;
  none["max_valid_rows"] = 0;
  expect_close(results(one, in, kForward).at("logp"), {-std::log(2.0), 0}, 1e-15, "logp");
  const Values saved = with_saved(one, in);
  for (const Values& all : {results(none, in, kForward), gradients(none, saved, kBackward)})
    for (const auto& [name, values] : all)
      expect_close(values, std::vector<double>(values.size(), kNaN), 0, name);
}

TEST(LinearLogProb, IgnoredAndInvalidRows) {
  const Values in{{"x", {1, 2, 3}}, {"w", {0, 0}}, {"target", {2, -100, 0}}, {"dlogp", {1, 1, 1}}};
  const Binding rows{{"T", 3}, {"H", 1}, {"V", 2}};
  expect_close(results(rows, in, kForward).at("logp"), {kNaN, 0, -std::log(2.0)}, 1e-15, "logp");
  const Values d = gradients(rows, with_saved(rows, in), kBackward);
  expect_close(d.at("dx"), {kNaN, 0, 0}, 0, "dx");
  expect_close(d.at("dw"), {kNaN, kNaN}, 0, "dw");
}

TEST(LinearLogProb, NoRows) {
  const Binding none{{"T", 0}, {"H", 1}, {"V", 2}};
  const Values in{{"x", {}}, {"w", {1, 2}}, {"target", {}}, {"lse", {}}, {"dlogp", {}}};
  expect_close(gradients(none, in, kBackward).at("dw"), {0, 0}, 0, "dw");
}

// A class that the bias forbids adds nothing, to S2 neither.
TEST(LinearLogProb, MaskedByTheBias) {
  const Binding row{{"T", 1}, {"H", 1}, {"V", 3}, {"dbias", 1}};
  const Values in{{"x", {1}},      {"w", {1, 1, 5}}, {"bias", {0, 0, -kInf}},
                  {"target", {0}}, {"dlogp", {2}},   {"dentropy", {1}}};
  const Values out = results(row, in, kForward), saved = with_saved(row, in);
  expect_close(out.at("entropy"), {std::log(2.0)}, 1e-15, "entropy");
  expect_close(gradients(row, saved, kBackward).at("dbias"), {1, -1, 0}, 1e-15, "dbias");
  for (const auto& [name, values] : results(row, in, kForwardIntermediate))
    for (const double v : values) EXPECT_TRUE(std::isfinite(v)) << name;
  for (const auto& [name, values] : gradients(row, saved, kBackwardIntermediate))
    for (const double v : values) EXPECT_TRUE(std::isfinite(v)) << name;
}

// Of the logits of one row x over the columns of w [H, V].
double equals_of_logits(const std::vector<double>& x, const Rows<double>& w) {
  const Rows<double> weights = w.transpose();
  const auto h = static_cast<int64_t>(x.size());
  const linear_head::Layer<double> layer{
      .x = view(x.data(), 1, h), .w = view(weights.data(), weights.rows(), h), .bias = {}};
  return linear_head::Stored<double>(layer, linear_head::logits(layer)).dependence(0).equals;
}

// 64 logits of two significands: each is rounded alike in 32 of them, to 4 u times the 1-norm's
// quarter at most.
TEST(LinearLogProb, LogitsOfEqualSignificandsAreRoundedAlike) {
  Row<double> z(64), apart(64);
  for (int i = 0; i < 64; ++i) {
    z[i] = std::ldexp(i % 2 ? 1.3 : 1.7, i / 2);
    apart[i] = z[i] * (1 + 0.001 * i);
  }
  EXPECT_EQ(equals_of_logits({1}, z), 32);
  EXPECT_EQ(equals_of_logits({1}, apart), 1);
}

// One product of two has the logits' size, and w two significands there: the other product moves no
// logit by a step. Where it does, no two logits are rounded alike.
TEST(LinearLogProb, LogitsInOneProductAreRoundedAlikeWhereItsWeightsAre) {
  Rows<double> w(2, 64);
  for (int i = 0; i < 64; ++i) w.col(i) << std::ldexp(i % 2 ? 1.3 : 1.7, i % 3), 1 + 0.01 * i;
  EXPECT_EQ(equals_of_logits({-0.7, 0.002}, w), 32);
  EXPECT_EQ(equals_of_logits({0.002, -0.7}, w.colwise().reverse()), 32);
  EXPECT_EQ(equals_of_logits({-0.7, 0.2}, w), 1);
}

class LinearLogProbTemperature : public testing::TestWithParam<double> {
 protected:
  static constexpr int64_t kT = 12, kH = 32, kV = 100;
  Binding setting(int64_t t, int64_t h, int64_t v) const {
    return {{"T", t},       {"H", h},    {"V", v}, {"temperature", GetParam()}, {"ignore_index", 2},
            {"entropy", 1}, {"dbias", 1}};
  }
  Values inputs(int64_t t, int64_t h, int64_t v) const {
    Random random(6);
    const double scale = std::min(2.0, GetParam()) / std::sqrt(double(h));
    Values in{{"x", random.normal(t * h)},       {"w", random.normal(v * h, scale)},
              {"bias", random.normal(v, scale)}, {"target", random.targets(t, v, 2)},
              {"dlogp", random.normal(t)},       {"dentropy", random.normal(t)}};
    for (const char* name : {"x", "w", "bias"})
      for (double& value : in[name]) value = float(bf16(value));
    return in;
  }
};

TEST_P(LinearLogProbTemperature, BackwardIsDerivativeOfForward) {
  const Binding setting = this->setting(4, 3, 5);
  const Values in = inputs(4, 3, 5);
  const Values d = gradients(setting, with_saved(setting, in), kBackward);
  const Values upstream{{"logp", in.at("dlogp")}, {"entropy", in.at("dentropy")}};
  for (const char* variable : {"x", "w", "bias"})
    expect_close(d.at("d" + std::string(variable)),
                 dual_gradient<Forward>(setting, in, variable, upstream, kForward), 1e-11,
                 variable);
}

TEST_P(LinearLogProbTemperature, SensitivityIsDerivativeOfRow) {
  const double scale = std::min(2.0, GetParam());
  const std::vector<double> values = Random(8).normal(5, scale);
  const Row<double> z = Eigen::Map<const Row<double>>(values.data(), 5);
  const auto of = linear_log_prob::sensitivity<double>(z, 3, GetParam());
  for (int64_t j = 0; j < 5; ++j) {
    Row<Dual> dual = z.cast<Dual>();
    dual[j].derivatives()[0] = 1;
    const Row<Dual> tempered = dual / Dual(GetParam());
    const Dual lse = cross_entropy::log_sum_exp(tempered), logp = tempered[3] - lse;
    const double tolerance = 1e-13 / GetParam();
    EXPECT_NEAR(of.lse[j], lse.derivatives()[0], tolerance);
    EXPECT_NEAR(of.logp[j], logp.derivatives()[0], tolerance);
    EXPECT_NEAR(of.entropy[j], cross_entropy::row_entropy(tempered, lse).derivatives()[0],
                tolerance);
  }
}

// A small step of one logit, which the bias moves, with lse and entropy as they were saved.
TEST_P(LinearLogProbTemperature, SlopeIsDerivativeOfTheGradient) {
  const Binding row = setting(1, 3, 5);
  Values in = inputs(1, 3, 5);
  in["target"] = {4};
  in = with_saved(row, in);
  Call<Backward<F64>> call(row, in);
  const Rows<double> z = linear_head::logits(call.args);
  const auto slope = linear_log_prob::gradient_slope<F64, double>(call.args, 0, z.row(0));
  const double step = 1e-6 * GetParam();
  for (size_t j = 0; j < 5; ++j) {
    Values up = in, down = in;
    up["bias"][j] += step;
    down["bias"][j] -= step;
    const double more = gradients(row, up, kBackward).at("dbias")[j];
    const double less = gradients(row, down, kBackward).at("dbias")[j];
    const double got = slope[int64_t(j)], want = std::abs(more - less) / (2 * step);
    EXPECT_NEAR(got, want, 1e-6 * (1 + got)) << j;
  }
}

TEST_P(LinearLogProbTemperature, ScaleBoundsFp32) {
  const Binding setting = this->setting(6, 8, 11);
  const Values in = inputs(6, 8, 11);
  const double n = 8 + row_sum_terms(11);
  const Values value = results(setting, in, kForward);
  const Values scale =
      results(setting, in, [](const auto& a) { linear_log_prob::forward_scale(a); });
  Call<Forward<F32>> fp32(setting, in);
  linear_log_prob::forward(fp32.args);
  for (const auto& [name, values] : value)
    expect_budget(values, scale.at(name), as_double(fp32.get(name)), n, 24, name);
  Values saved = with_saved(setting, in);
  for (const char* name : {"lse", "entropy"})
    for (double& v : saved[name]) v = static_cast<float>(v);
  const Values exact = gradients(setting, saved, kBackward);
  const Values gradient_scale =
      gradients(setting, saved, [](const auto& a) { linear_log_prob::backward_scale(a); });
  Call<Backward<F32>> backward_fp32(setting, saved);
  linear_log_prob::backward(backward_fp32.args);
  for (const auto& [name, values] : exact)
    expect_budget(values, gradient_scale.at(name), as_double(backward_fp32.get(name)), n + 6, 24,
                  name);
}

// What a kernel does that stores logits and their gradient in bf16 and is otherwise exact: its
// worst error should be 0.1 to 0.8 of the budget lambda u S2, lambda = 4.
TEST_P(LinearLogProbTemperature, IntermediateBoundsBf16StorageTightly) {
  const Binding setting = this->setting(kT, kH, kV);
  Values in = inputs(kT, kH, kV);
  in.erase("bias");  // of which a product may be rounded once more
  const Values saved = with_saved(setting, in);
  const auto stored = [](double z) { return double(bf16(z)); };
  Call<Forward<F64>> f(setting, in);
  Rows<double> z = linear_head::logits(f.args).unaryExpr(stored);
  log_prob::forward(linear_log_prob::on_logits(f.args, z));
  Call<Backward<F64>> b(setting, saved);
  z = linear_head::logits(b.args).unaryExpr(stored);
  log_prob::backward(linear_log_prob::on_logits(b.args, z));
  z = z.unaryExpr(stored).eval();
  linear_head::write_gradients(b.args, z);
  const auto expect_tight = [](const Values& value, const Values& s2, const auto& got) {
    for (const auto& [name, values] : value) {
      double worst = 0;
      const std::vector<double> results = got(name);
      for (size_t i = 0; i < values.size(); ++i)
        if (s2.at(name)[i] > 0)
          worst = std::max(worst, std::abs(results[i] - values[i]) / (4 * 0x1p-8 * s2.at(name)[i]));
      EXPECT_GT(worst, 0.1) << name;
      EXPECT_LT(worst, 0.8) << name;
    }
  };
  expect_tight(results(setting, in, kForward), results(setting, in, kForwardIntermediate),
               [&](const std::string& name) { return f.get(name); });
  expect_tight(gradients(setting, saved, kBackward),
               gradients(setting, saved, kBackwardIntermediate),
               [&](const std::string& name) { return b.get(name); });
}

INSTANTIATE_TEST_SUITE_P(All, LinearLogProbTemperature, testing::Values(1.0, 0.7, 0.01, 100.0));

}  // namespace
}  // namespace tigon::reference
