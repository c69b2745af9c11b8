// SPDX-License-Identifier: Apache-2.0
// Tests of linear_cross_entropy's oracle.
#include "reference/linear_cross_entropy.h"

#include <map>
#include <random>

#include "reference/tests/dual.h"
#include "reference/tests/loss_options.h"

namespace tigon::reference {
namespace {

using linear_cross_entropy::Forward;
using linear_cross_entropy::ForwardBackward;

using Outputs = Values;
constexpr const char* kOutputs[] = {"loss", "lse", "dx", "dw"};
constexpr const char* kResults[] = {"z_part", "entropy"};

template <class Pass>
Outputs run(const Binding& setting, const Values& in, Pass pass) {
  Call<ForwardBackward<F64>> call(setting, in);
  pass(call.args);
  Outputs out;
  for (const char* t : kOutputs) out[t] = call.get(t);
  for (const char* t : kResults)
    if (setting.count(t)) out[t] = call.get(t);
  return out;
}
const auto kValue = [](const auto& a) { linear_cross_entropy::forward_backward(a); };
const auto kScale = [](const auto& a) { linear_cross_entropy::forward_backward_scale(a); };
const auto kIntermediate = [](const auto& a) {
  linear_cross_entropy::forward_backward_intermediate(a);
};

TEST(LinearCrossEntropy, HandComputed) {
  // logits (0, log 3), so p = (1/4, 3/4) and dlogits = (1/4, -1/4)
  const double l = std::log(3.0);
  const Values in{{"x", {1, 2}}, {"w", {0, 0, l, 0}}, {"target", {1}}};
  const Outputs out = run({{"T", 1}, {"H", 2}, {"V", 2}}, in, kValue);
  expect_close(out.at("loss"), {std::log(4.0 / 3)}, 1e-15, "loss");
  expect_close(out.at("dx"), {-l / 4, 0}, 1e-15, "dx");
  expect_close(out.at("dw"), {0.25, 0.5, -0.25, -0.5}, 1e-15, "dw");
}

// The same logits from a bias, a quarter of the gradient by the normaliser, and dw added.
TEST(LinearCrossEntropy, HandComputedBiasNormaliserAndSum) {
  const double l = std::log(3.0);
  const Values in{{"x", {1, 2}},    {"w", {0, 0, 0, 0}}, {"target", {1}},
                  {"bias", {0, l}}, {"normaliser", {4}}, {"dw_accum", {1, 1, 1, 1}}};
  Call<ForwardBackward<F64>> call({{"T", 1}, {"H", 2}, {"V", 2}, {"dbias", 1}}, in, {"dw"});
  linear_cross_entropy::forward_backward(call.args);
  expect_close(call.get("loss"), {std::log(4.0 / 3) / 4}, 1e-15, "loss");
  expect_close(call.get("dbias"), {1.0 / 16, -1.0 / 16}, 1e-15, "dbias");
  expect_close(call.get("dw_accum"), {17.0 / 16, 18.0 / 16, 15.0 / 16, 14.0 / 16}, 1e-15, "dw");
}

TEST(LinearCrossEntropy, MoreRowsThanPromisedGiveNaN) {
  const Values in{{"x", {1, 2}}, {"w", {1, 1}}, {"target", {0, -100}}};
  const Binding one{{"T", 2}, {"H", 1}, {"V", 2}, {"max_valid_rows", 1}};
  Binding none = one;
  none["max_valid_rows"] = 0;
  expect_close(run(one, in, kValue).at("loss"), {std::log(2.0)}, 1e-15, "loss");
  for (const auto& [name, values] : run(none, in, kValue))
    expect_close(values, std::vector<double>(values.size(), kNaN), 0, name);
}

TEST(LinearCrossEntropy, AllIgnoredGiveZero) {
  const Values in{{"x", {1, 2}}, {"w", {1, 1, 1, 0}}, {"target", {-100}}};
  for (const auto& [name, values] : run({{"T", 1}, {"H", 2}, {"V", 2}}, in, kValue))
    expect_close(values, std::vector<double>(values.size(), 0), 0, name);
}

TEST(LinearCrossEntropy, InvalidTargetPoisonsItsRow) {
  const Values in{{"x", {1, 2}}, {"w", {0, 0}}, {"target", {2, 0}}};
  const Outputs out =
      run({{"T", 2}, {"H", 1}, {"V", 2}, {"reduction", double(Reduction::kNone)}}, in, kValue);
  expect_close(out.at("loss"), {kNaN, std::log(2.0)}, 1e-15, "loss");
  expect_close(out.at("dx"), {kNaN, 0}, 0, "dx");
  expect_close(out.at("dw"), {kNaN, kNaN}, 0, "dw");
}

TEST(LinearCrossEntropy, NoRows) {
  const Outputs out =
      run({{"T", 0}, {"H", 1}, {"V", 2}}, {{"x", {}}, {"w", {1, 2}}, {"target", {}}}, kValue);
  expect_close(out.at("loss"), {0}, 0, "loss");
  expect_close(out.at("dw"), {0, 0}, 0, "dw");
}

class LinearCrossEntropyOptions : public testing::TestWithParam<LossCase> {
 protected:
  Binding setting(int64_t t, int64_t h, int64_t v) {
    return loss_setting(GetParam(), {{"T", t}, {"H", h}, {"V", v}});
  }
  // `confidence` moves every row towards its target's weights.
  Values inputs(int64_t t, int64_t h, int64_t v, double confidence) {
    Random random(6);
    Values in{{"x", random.normal(t * h)},
              {"w", random.normal(v * h, 1 / std::sqrt(double(h)))},
              {"target", random.targets(t, v, 2)}};
    for (int64_t i = 0; i < t * h; ++i) {
      const auto y = static_cast<int64_t>(in["target"][size_t(i / h)]);
      double& x = in["x"][size_t(i)];
      x = float(bf16(x + confidence * in["w"][size_t(y * h + i % h)]));
    }
    for (double& w : in["w"]) w = float(bf16(w));
    if (std::get<4>(GetParam())) in["dloss"] = loss_upstream(GetParam(), t);
    add_class_weights(GetParam(), v, &in);
    return in;
  }
};

TEST_P(LinearCrossEntropyOptions, BackwardIsDerivativeOfForward) {
  const Binding setting = this->setting(4, 3, 5);
  const Values in = inputs(4, 3, 5, 0);
  const Outputs out = run(setting, in, kValue);
  Values upstream{{"loss", std::vector<double>(out.at("loss").size(), 1)}};
  if (in.count("dloss")) upstream["loss"] = in.at("dloss");
  for (const char* variable : {"x", "w"})
    expect_close(out.at("d" + std::string(variable)),
                 dual_gradient<Forward>(setting, in, variable, upstream,
                                        [](const auto& a) { linear_cross_entropy::forward(a); }),
                 1e-12, variable);
}

TEST_P(LinearCrossEntropyOptions, SensitivityIsDerivativeOfRow) {
  const int64_t v = 5, y = 3;
  const Binding setting = this->setting(1, 1, v);
  LossOptions o;
  o.softcap = static_cast<float>(setting.at("softcap"));
  o.label_smoothing = static_cast<float>(setting.at("label_smoothing"));
  o.z_loss = static_cast<float>(setting.at("z_loss"));
  const std::vector<double> values = Random(8).normal(v, 2);
  const Row<double> z = Eigen::Map<const Row<double>>(values.data(), v);
  const Row<double> weights = 1.5 + Row<double>::LinSpaced(v, -0.5, 0.5);
  const cross_entropy::Weighting<double> w{weights, weights.sum(), 0.25, 2 * double(o.z_loss), 0.5};
  const cross_entropy::Weighting<Dual> dual_w{weights.cast<Dual>(), w.all, w.share, w.z_loss, 0.5};
  const auto of = linear_cross_entropy::sensitivity(z, y, o, w);
  for (int64_t j = 0; j < v; ++j) {
    Row<Dual> dual = z.cast<Dual>();
    dual[j].derivatives()[0] = 1;
    const Row<Dual> x = cross_entropy::softcapped(dual, o.softcap);
    const Dual lse = cross_entropy::log_sum_exp(x);
    const Row<Dual> g = cross_entropy::row_gradient(dual, lse, y, o, dual_w);
    const Dual loss = cross_entropy::row_loss(x, lse, y, o, dual_w);
    EXPECT_NEAR(of.lse_gradient[j], lse.derivatives()[0], 1e-14);
    EXPECT_NEAR(of.gradient[j], loss.derivatives()[0], 1e-14);
    EXPECT_NEAR(of.entropy_gradient[j], cross_entropy::row_entropy(x, lse).derivatives()[0], 1e-14);
    for (int64_t i = 0; i < v; ++i)
      EXPECT_NEAR((i == j ? of.d[i] : 0) + of.c * of.v[i] * of.v[j], g[i].derivatives()[0], 1e-14)
          << i << ", " << j;
  }
}

// Equal logits, of which every second is then rounded up and the others down as far as bf16 may:
// the entropy has no first derivative there, and S2 covers what it moves by nevertheless.
TEST(LinearCrossEntropy, EntropyOfEqualLogitsMovesToSecondOrder) {
  const double z = 5, roundoff = 0x1p-8;
  const auto entropy = [&](double delta, auto pass) {
    const Values in{{"x", {z}}, {"w", Values::mapped_type(64, 1)}, {"target", {0}}};
    Values moved = in;
    for (size_t j = 0; j < 64; ++j) moved["w"][j] += j % 2 ? delta : -delta;
    return run({{"T", 1}, {"H", 1}, {"V", 64}, {"entropy", 1}}, moved, pass).at("entropy")[0];
  };
  const double change = entropy(0, kValue) - entropy(roundoff, kValue);
  EXPECT_GT(change, 1e-5);
  EXPECT_GT(4 * roundoff * entropy(0, kIntermediate), change);
  EXPECT_LT(4 * roundoff * entropy(0, kIntermediate), 1.2 * change);
}

// What rounds alike in 64 equal rows adds up: a quarter of 64 times the 1-norm of a row's three
// roundings, which is up to sqrt(3) times their 2-norm. Rows apart give about 8 times one.
TEST(LinearCrossEntropy, EqualRowsAreRoundedAlike) {
  const auto dbias = [](int64_t t, double apart) {
    Values in{{"w", {1, 1.9}}, {"bias", {0, 0}}};
    for (int64_t row = 0; row < t; ++row) {
      in["x"].push_back(1 + apart * static_cast<double>(row));
      in["target"].push_back(0);
    }
    Call<ForwardBackward<F64>> call(
        {{"T", t}, {"H", 1}, {"V", 2}, {"dbias", 1}, {"reduction", int64_t(Reduction::kSum)}}, in);
    kIntermediate(call.args);
    return call.get("dbias")[1];
  };
  EXPECT_GT(dbias(64, 0) / dbias(1, 0), 16);
  EXPECT_LT(dbias(64, 0) / dbias(1, 0), 16 * std::sqrt(3.0));
  EXPECT_LT(dbias(64, 0.02) / dbias(1, 0), 10);
}

// Rows that differ, all of them sure of the wrong class: their gradients are equal, so their
// roundings add up to a quarter of 64 times one. Of 64 that round apart it would be 8 times one.
TEST(LinearCrossEntropy, GradientsOfSurePredictionsAreRoundedAlike) {
  const auto dbias = [](int64_t t) {
    Values in{{"w", {4, -5}}, {"bias", {0, 0}}};
    for (int64_t row = 0; row < t; ++row) {
      in["x"].push_back(10 + 0.5 * static_cast<double>(row));
      in["target"].push_back(1);
    }
    Call<ForwardBackward<F64>> call(
        {{"T", t}, {"H", 1}, {"V", 2}, {"dbias", 1}, {"reduction", int64_t(Reduction::kSum)}}, in);
    kIntermediate(call.args);
    return call.get("dbias")[0];
  };
  EXPECT_NEAR(dbias(64) / dbias(1), 16, 1e-6);
}

TEST_P(LinearCrossEntropyOptions, PassesAgree) {
  const Binding setting = this->setting(4, 3, 5);
  const Values in = inputs(4, 3, 5, 0);
  const Outputs both = run(setting, in, kValue);
  Call<Forward<F64>> forward(setting, in);
  linear_cross_entropy::forward(forward.args);
  EXPECT_EQ(forward.get("loss"), both.at("loss"));
  EXPECT_EQ(forward.get("lse"), both.at("lse"));

  const Outputs scale = run(setting, in, kScale), stored = run(setting, in, kIntermediate);
  linear_cross_entropy::forward_scale(forward.args);
  EXPECT_EQ(forward.get("loss"), scale.at("loss"));
  linear_cross_entropy::forward_intermediate(forward.args);
  EXPECT_EQ(forward.get("lse"), stored.at("lse"));

  Call<ForwardBackward<F64>> none(setting, in, {"dx", "dw"});
  kValue(none.args);
  EXPECT_EQ(none.get("loss"), both.at("loss"));
  kScale(none.args);
  kIntermediate(none.args);
}

TEST_P(LinearCrossEntropyOptions, ScaleBoundsFp32) {
  const int64_t t = 6, h = 8, v = 11;
  for (double confidence : {0.0, 6.0}) {
    const Values in = inputs(t, h, v, confidence);
    const Outputs value = run(setting(t, h, v), in, kValue);
    const Outputs scale = run(setting(t, h, v), in, kScale);
    Call<ForwardBackward<F32>> fp32(setting(t, h, v), in);
    linear_cross_entropy::forward_backward(fp32.args);
    for (const auto& [o, values] : value)
      expect_budget(values, scale.at(o), as_double(fp32.get(o)), h + row_sum_terms(v), 24, o);
  }
}

// S of dx and dw by its definition, with a full hessian for every row.
TEST_P(LinearCrossEntropyOptions, ScaleByDefinition) {
  const int64_t t = 4, h = 3, v = 5;
  const Values in = inputs(t, h, v, 2);
  Call<ForwardBackward<F64>> call(setting(t, h, v), in);
  const auto& a = call.args;
  const Rows<double> x = array(a.x), w = array(a.w), x_abs = x.abs(), w_abs = w.abs();
  const Rows<double> z = times_transpose(x, w);
  const Rows<double> z_scale = times_transpose(x_abs, w_abs);
  Rows<double> d = Rows<double>::Zero(t, v);
  const auto weights = cross_entropy::weighting(a, v);
  for (int64_t row = 0; row < t; ++row) {
    const int64_t y = a.target.data[row];
    if (y == a.ignore_index) continue;
    const auto of = linear_cross_entropy::sensitivity<double>(z.row(row), y, a, weights);
    Eigen::MatrixXd hessian = of.c * of.v.matrix().transpose() * of.v.matrix();
    hessian.diagonal() += of.d.matrix();
    d.row(row) = cross_entropy::row_gradient_scale<double>(z.row(row), of.lse, y, a, weights) +
                 (z_scale.row(row).matrix() * hessian.cwiseAbs()).array();
    d.row(row) *= std::abs(cross_entropy::upstream(a, weights)[row]);
  }
  const Outputs scale = run(setting(t, h, v), in, kScale);
  const Rows<double> dx = times(d, w_abs);
  const Rows<double> dw = transpose_times(d, x_abs);
  expect_close(scale.at("dx"), {dx.data(), dx.data() + dx.size()}, 1e-12, "dx");
  expect_close(scale.at("dw"), {dw.data(), dw.data() + dw.size()}, 1e-12, "dw");
}

// S2 of dx and dw by its definition, with a full hessian for every row.
TEST_P(LinearCrossEntropyOptions, IntermediateByDefinition) {
  const int64_t t = 4, h = 3, v = 5;
  const Values in = inputs(t, h, v, 2);
  Call<ForwardBackward<F64>> call(setting(t, h, v), in);
  const auto& a = call.args;
  const Rows<double> x = array(a.x), w = array(a.w);
  const Rows<double> z = times_transpose(x, w);
  const auto weights = cross_entropy::weighting(a, v);
  const Row<double> g = cross_entropy::upstream(a, weights);
  Rows<double> dx2 = Rows<double>::Zero(t, h), dw2 = Rows<double>::Zero(v, h);
  for (int64_t row = 0; row < t; ++row) {
    if (a.target.data[row] == a.ignore_index) continue;
    const auto of =
        linear_cross_entropy::sensitivity<double>(z.row(row), a.target.data[row], a, weights);
    Eigen::MatrixXd change = of.c * of.v.matrix().transpose() * of.v.matrix();  // [dlogit, logit]
    change.diagonal() += of.d.matrix();
    change = g[row] * change * z.row(row).matrix().asDiagonal();
    const Eigen::MatrixXd stored = (g[row] * of.gradient).matrix().asDiagonal();
    for (const Eigen::MatrixXd& m : {change, stored}) {
      dx2.row(row) += (m.transpose() * w.matrix()).array().square().colwise().sum();
      dw2 += (m.rowwise().squaredNorm() * x.row(row).square().matrix()).array();
    }
  }
  const Outputs s2 = run(setting(t, h, v), in, kIntermediate);
  const Rows<double> dx = dx2.sqrt(), dw = dw2.sqrt();
  expect_close(s2.at("dx"), {dx.data(), dx.data() + dx.size()}, 1e-12, "dx");
  expect_close(s2.at("dw"), {dw.data(), dw.data() + dw.size()}, 1e-12, "dw");
}

// What a kernel does that stores logits and their gradient in bf16 and is otherwise exact.
Outputs with_bf16_storage(const Binding& setting, const Values& in) {
  Call<ForwardBackward<F64>> call(setting, in);
  const auto& a = call.args;
  const Rows<double> x = array(a.x), w = array(a.w);
  const auto stored = [](double z) { return double(bf16(z)); };
  Rows<double> z = times_transpose(x, w).unaryExpr(stored);
  cross_entropy::ForwardBackward<F64> f;
  cross_entropy::take_extras(a, &f);
  f.logits = view(z.data(), z.rows(), z.cols());
  f.target = a.target;
  f.dloss = a.dloss;
  f.loss = a.loss;
  f.lse = a.lse;
  cross_entropy::forward_backward(f);
  z = z.unaryExpr(stored).eval();
  array(a.dx) = times(z, w);
  array(a.dw) = transpose_times(z, x);
  Outputs out;
  for (const char* t : kOutputs) out[t] = call.get(t);
  for (const char* t : kResults)
    if (setting.count(t)) out[t] = call.get(t);
  return out;
}

// Logits of 30.2 that are all stored as 30.25 or 30.125: the errors do not cancel in a long row,
// and 4 u S2 is the bound of them all.
TEST(LinearCrossEntropy, RoundingsOfEqualLogitsAreNotIndependent) {
  using Logits = Row<double>;
  const Logits narrow = 30.2 + 0.05 * Logits::LinSpaced(600, -1, 1);
  const Logits wide = 30.2 + 5 * Logits::LinSpaced(600, -1, 1);
  const Dependence<double> of_narrow(narrow), of_wide(wide);
  EXPECT_TRUE(of_narrow.alike);
  EXPECT_FALSE(of_wide.any());
  EXPECT_DOUBLE_EQ(std::sqrt(squared_norm<double>(narrow, of_narrow)), narrow.sum() / 4);
  EXPECT_NEAR(std::sqrt(squared_norm<double>(wide, of_wide)), wide.matrix().norm(), 1e-9);
  // Each value four times, and zeros, which nothing rounds.
  Logits fours(2400 + 100);
  fours << wide, wide, wide, wide, Logits::Zero(100);
  const Dependence<double> of_fours(fours);
  EXPECT_DOUBLE_EQ(of_fours.equals, 4);
  EXPECT_NEAR(std::sqrt(squared_norm<double>(fours, of_fours)), 2 * fours.matrix().norm(), 1e-9);
}

// In long rows, too, where most values have no equal: against a count of each value.
TEST(LinearCrossEntropy, EqualLogitsOfLongRowsAreCounted) {
  std::mt19937_64 random(20261126);
  for (const int values : {5, 100000, 100000000}) {
    Row<double> z(50000);
    for (double& x : z) x = static_cast<double>(random() % values) / 7 - 3;
    std::map<double, double> times;
    for (const double x : z)
      if (x != 0) times[x] += 1;
    double pairs = 0, all = 0;
    for (const auto& [value, n] : times) {
      pairs += n * n;
      all += n;
    }
    EXPECT_EQ(equals_of_one<double>(z), pairs / all) << values;
  }
}

// The worst error of a correct kernel should be 0.1 to 0.8 of the budget lambda u S2, lambda = 4.
TEST_P(LinearCrossEntropyOptions, IntermediateBoundsBf16StorageTightly) {
  const int64_t t = 12, h = 32, v = 100;
  for (double confidence : {0.0, 6.0}) {
    const Values in = inputs(t, h, v, confidence);
    const Outputs value = run(setting(t, h, v), in, kValue);
    const Outputs s2 = run(setting(t, h, v), in, kIntermediate);
    const Outputs stored = with_bf16_storage(setting(t, h, v), in);
    for (const auto& [o, values] : value) {
      double worst = 0;
      for (size_t i = 0; i < value.at(o).size(); ++i) {
        const double budget = 4 * 0x1p-8 * s2.at(o)[i] + 1e-15;
        worst = std::max(worst, std::abs(stored.at(o)[i] - value.at(o)[i]) / budget);
      }
      EXPECT_LE(worst, 0.8) << o << " at confidence " << confidence;
      const bool has_error = o != "z_part" || setting(t, h, v).at("z_loss") != 0;
      if (values.size() > 1 && has_error) {  // one number may be close by luck
        EXPECT_GE(worst, 0.1) << o << " at confidence " << confidence;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LinearCrossEntropyOptions, all_loss_options(), loss_case_name);

}  // namespace
}  // namespace tigon::reference
