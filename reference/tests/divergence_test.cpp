// SPDX-License-Identifier: Apache-2.0
// Tests of divergence's oracle.
#include "reference/divergence.h"

#include "reference/tests/dual.h"

namespace tigon::reference {
namespace {

using divergence::Backward;
using divergence::Forward;
const auto kForward = [](const auto& a) { divergence::forward(a); };

constexpr int kForwardKl = 0, kReverseKl = 1, kJsd = 2;
const double kLn2 = std::log(2.0), kLn3 = std::log(3.0);

Values run_forward(const Binding& setting, const Values& in) {
  Call<Forward<F64>> call(setting, in);
  divergence::forward(call.args);
  return {{"loss", call.get("loss")},
          {"lse", call.get("lse")},
          {"teacher_lse", call.get("teacher_lse")},
          {"slope", call.get("slope")}};
}

// Backward on what forward saves.
std::vector<double> gradient(const Binding& setting, Values in) {
  for (const auto& [name, values] : run_forward(setting, in))
    if (name != "loss") in[name] = values;
  Call<Backward<F64>> call(setting, in);
  divergence::backward(call.args);
  return call.get("dlogits");
}

Binding row_of(int columns, int kind, double beta = 0.5) {
  return {{"T", 1}, {"V", columns}, {"kind", kind}, {"beta", beta}};
}

TEST(Divergence, HandComputedRow) {
  const Values in{{"logits", {0, kLn3}}, {"teacher", {0, 0}}, {"dloss", {8}}};  // q 1/4, 3/4
  const double forward = 0.5 * kLn2 + 0.5 * std::log(2.0 / 3), to_q = 0.25 * std::log(0.5),
               reverse = to_q + 0.75 * std::log(1.5);
  const auto loss = [&](const Binding& row) { return run_forward(row, in).at("loss"); };
  expect_close(loss(row_of(2, kForwardKl)), {forward}, 1e-15, "forward_kl");
  expect_close(loss(row_of(2, kReverseKl)), {reverse}, 1e-15, "reverse_kl");
  // m = 3/8, 5/8
  const double of_p = 0.5 * std::log(4.0 / 3) + 0.5 * std::log(4.0 / 5),
               of_q = 0.25 * std::log(2.0 / 3) + 0.75 * std::log(6.0 / 5);
  expect_close(loss(row_of(2, kJsd)), {0.5 * (of_p + of_q)}, 1e-14, "jsd");
  expect_close(gradient(row_of(2, kForwardKl), in), {-2, 2}, 1e-15, "gradient of forward_kl");
}

TEST(Divergence, GradientIsTheDerivative) {
  Random random(3);
  const Values in{{"logits", random.normal(10)},
                  {"teacher", random.normal(10)},
                  {"target", {1, 4}},
                  {"dloss", {1.5, -2}}};
  for (const int kind : {kForwardKl, kReverseKl, kJsd})
    for (const double beta : {0.0, 0.1, 0.5, 1.0})
      for (const double temperature : {0.5, 3.0}) {
        const Binding rows{{"T", 2},       {"V", 5},      {"kind", kind},
                           {"beta", beta}, {"target", 1}, {"temperature", temperature}};
        const auto want =
            dual_gradient<Forward>(rows, in, "logits", {{"loss", in.at("dloss")}}, kForward);
        expect_close(gradient(rows, in), want, 1e-13, "gradient");
      }
}

TEST(Divergence, EqualRowsGiveExactlyZero) {
  const std::vector<double> z{0.3, -2, 7, -kInf};
  for (const int kind : {kForwardKl, kReverseKl, kJsd}) {
    const Values in{{"logits", z}, {"teacher", z}, {"dloss", {5}}};
    expect_close(run_forward(row_of(4, kind), in).at("loss"), {0}, 0, "loss");
    expect_close(gradient(row_of(4, kind), in), {0, 0, 0, 0}, 0, "gradient");
  }
}

// Columns that one vocabulary has not: the missing probability is 0.
TEST(Divergence, MaskedColumns) {
  Values in{{"logits", {0, 0, -kInf}}, {"teacher", {0, 0, 0}}, {"dloss", {1}}};
  const auto loss = [&](int kind) { return run_forward(row_of(3, kind), in).at("loss"); };
  expect_close(loss(kForwardKl), {kInf}, 0, "of the student alone");
  expect_close(loss(kReverseKl), {std::log(1.5)}, 1e-15, "of the student alone");
  const double of_p = 2.0 / 3 * std::log(2.0 / 3 / (5.0 / 6)) + kLn2 / 3, of_q = std::log(1.2);
  expect_close(loss(kJsd), {0.5 * (of_p + of_q)}, 1e-15, "of the student alone");
  std::swap(in["logits"], in["teacher"]);
  expect_close(loss(kForwardKl), {std::log(1.5)}, 1e-15, "of the teacher alone");
  expect_close(loss(kReverseKl), {kInf}, 0, "of the teacher alone");
  expect_close(loss(kJsd), {0.5 * (of_p + of_q)}, 1e-15, "of the teacher alone");
}

TEST(Divergence, RowsThatAreNaN) {
  for (const int kind : {kForwardKl, kReverseKl, kJsd})
    for (const std::vector<double>& row :
         {std::vector<double>{-kInf, -kInf}, {kInf, 1}, {kNaN, 1}}) {
      const Values student{{"logits", row}, {"teacher", {0, 1}}, {"dloss", {1}}};
      const Values teacher{{"logits", {0, 1}}, {"teacher", row}, {"dloss", {1}}};
      expect_close(run_forward(row_of(2, kind), student).at("loss"), {kNaN}, 0, "student");
      expect_close(run_forward(row_of(2, kind), teacher).at("loss"), {kNaN}, 0, "teacher");
    }
}

TEST(Divergence, IgnoredRowsAreZero) {
  const Values in{{"logits", {kNaN, kInf, 0, kLn3}},
                  {"teacher", {kNaN, 0, 0, 0}},
                  {"target", {-100, 7}},  // no class: it means nothing here
                  {"dloss", {kNaN, 8}}};
  const Binding rows{{"T", 2}, {"V", 2}, {"target", 1}};
  EXPECT_EQ(run_forward(rows, in).at("loss")[0], 0);
  EXPECT_EQ(run_forward(rows, in).at("lse")[0], 0);
  expect_close(gradient(rows, in), {0, 0, -2, 2}, 1e-15, "gradient");
}

TEST(Divergence, GradientInPlace) {
  Random random(2);
  Values in{{"logits", random.normal(10)}, {"teacher", random.normal(10)}, {"dloss", {1, -2}}};
  for (const auto& [name, values] : run_forward({{"T", 2}, {"V", 5}, {"kind", kJsd}}, in))
    if (name != "loss") in[name] = values;
  const Binding rows{{"T", 2}, {"V", 5}, {"kind", kJsd}};
  Call<Backward<F64>> call(rows, in), in_place(rows, in);
  divergence::backward(call.args);
  in_place.args.dlogits.data = const_cast<double*>(in_place.args.logits.data);
  divergence::backward(in_place.args);
  EXPECT_EQ(in_place.get("logits"), call.get("dlogits"));
}

}  // namespace
}  // namespace tigon::reference
