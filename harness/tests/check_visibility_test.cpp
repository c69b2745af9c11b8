// SPDX-License-Identifier: Apache-2.0
// An option without effect is reported by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/run/judging/oracle.h"
#include "harness/tests/visibility.h"

namespace tigon {
namespace {

std::vector<VisibilityCheck> checks_of(const char* op, const char* pass) {
  const OpSpec& spec = *find_op(op);
  for (const Pass& p : spec.passes)
    if (p.name == pass) return visibility_of(spec, p, DType::kBF16);
  return {};
}

TEST(Visibility, names_op_pass_and_option_that_does_nothing) {
  std::vector<std::string> wrong;
  for (const VisibilityCheck& check : checks_of("relations", "centre"))
    if (!check.passed()) wrong.push_back(text_of(check));
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0], "relations centre bf16 option unused: 0 budgets: by none of its cases");
}

TEST(Visibility, an_option_that_is_declared_invisible_must_not_show) {
  OpSpec op = *find_op("faulty");
  op.passes[0].invisible["factor"] = "it is hidden";
  int wrong = 0;
  for (const VisibilityCheck& check : visibility_of(op, op.passes[0], DType::kF32)) {
    if (check.passed()) continue;
    ++wrong;
    EXPECT_NE(text_of(check).find("option factor: declared invisible, but moves"),
              std::string::npos);
  }
  EXPECT_EQ(wrong, 1);
}

// What does not show where the op has this oracle.
std::set<std::string> hidden_with(Oracle oracle) {
  Pass& pass = const_cast<OpSpec*>(find_op("faulty"))->passes[0];
  std::swap(pass.oracle, oracle);
  std::set<std::string> hidden;
  for (const VisibilityCheck& check : checks_of("faulty", "forward"))
    if (!check.passed()) hidden.insert(check.what);
  std::swap(pass.oracle, oracle);
  return hidden;
}

// A contract whose outputs do not depend on anything would let every kernel pass.
TEST(Visibility, an_output_that_never_changes_is_named) {
  const auto hidden = hidden_with([](const Bound& b) {
    const TensorRef& y = b.tensors.at("y");
    std::fill_n(static_cast<double*>(y.data), y.shape[0] * y.shape[1], 0.0);
  });
  EXPECT_EQ(hidden, (std::set<std::string>{"option factor", "input x", "input w",
                                           "tensor w left out", "another seed",
                                           "output y is not zeros", "output y is not a constant"}));
}

TEST(Visibility, an_output_that_is_an_input_is_named) {
  const auto hidden = hidden_with([](const Bound& b) {
    const TensorRef &x = b.tensors.at("x"), &y = b.tensors.at("y");
    std::copy_n(static_cast<double*>(x.data), x.shape[0] * x.shape[1],
                static_cast<double*>(y.data));
  });
  EXPECT_EQ(hidden, (std::set<std::string>{"option factor", "input w", "tensor w left out",
                                           "output y is not x"}));
}

// Else zeros would pass for it.
TEST(Oracle, an_output_that_it_forgets_is_nan) {
  Pass& pass = const_cast<OpSpec*>(find_op("faulty"))->passes[0];
  Oracle forgetful = [](const Bound&) {};
  std::swap(pass.oracle, forgetful);
  const auto expected = run_oracle(make_problem(parse_case("faulty/forward/right/f32/N=1,M=5")));
  std::swap(pass.oracle, forgetful);
  for (const double v : expected.at("y").value) EXPECT_TRUE(std::isnan(v));
}

TEST(Visibility, of_a_sound_contract_is_complete) {
  for (const VisibilityCheck& check : checks_of("faulty", "forward"))
    EXPECT_TRUE(check.passed()) << text_of(check);
  for (const VisibilityCheck& check : checks_of("relations", "weigh"))
    EXPECT_TRUE(check.passed()) << text_of(check);
}

}  // namespace
}  // namespace tigon
