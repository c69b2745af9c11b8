// SPDX-License-Identifier: Apache-2.0
// A sum that lost a few columns of a wide row, or one of many rows, is beyond its budget.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/run/judging/oracle.h"

namespace tigon {
namespace {

constexpr int64_t kColumns = 128256;

// log sum exp of a row without its last columns.
double lse_without(const std::vector<double>& logits, int64_t row, int64_t lost) {
  double sum = 0;
  for (int64_t v = 0; v < kColumns - lost; ++v)
    sum += std::exp(logits[static_cast<size_t>(row * kColumns + v)]);
  return std::log(sum);
}

const CaseTensor& tensor_of(const Problem& problem, const std::string& name) {
  for (const CaseTensor& t : problem.tensors)
    if (t.info->name == name) return t;
  throw std::logic_error(name);
}

Verdict verdict_of(const Problem& problem, const std::string& name,
                   const std::vector<double>& got) {
  const CaseTensor& output = tensor_of(problem, name);
  return compare(name, got, run_oracle(problem).at(name), output.shape, budget_of(problem, output))
      .verdict;
}

// Of the output lse of a case of two rows.
Verdict verdict_of_losing(const char* dtype, int64_t lost) {
  const Problem problem = make_problem(parse_case(std::string("cross_entropy/forward/fused/") +
                                                  dtype + "/T=2,V=128256,reduction=none"));
  const std::vector<double>& logits = tensor_of(problem, "logits").input;
  return verdict_of(problem, "lse", {lse_without(logits, 0, lost), lse_without(logits, 1, lost)});
}

TEST(LostVector, shows_in_a_row_of_128256_columns) {
  for (const auto& [dtype, vector] : {std::pair{"f32", 4}, {"bf16", 8}, {"f16", 8}}) {
    EXPECT_EQ(verdict_of_losing(dtype, 0), Verdict::kPassed) << dtype;
    EXPECT_EQ(verdict_of_losing(dtype, vector), Verdict::kIncorrectNumerical) << dtype;
  }
}

// The first element of at least 1, which is no small one of a normal distribution.
size_t sizeable(const std::vector<double>& values, size_t step = 1) {
  size_t i = 0;
  while (std::abs(values[i]) < 1) i += step;
  return i;
}

TEST(LostElement, shows_in_rstd_of_a_row_of_16385_columns) {
  const Problem problem = make_problem(parse_case("rms_norm/forward/fused/f32/T=1,H=16385"));
  const std::vector<double>& x = tensor_of(problem, "x").input;
  const double eps = problem.binding.at("eps");
  double squares = 0;
  for (const double v : x) squares += v * v;
  const auto rstd = [&](double sum) { return 1 / std::sqrt(sum / 16385 + eps); };
  const double lost = x[sizeable(x)];
  EXPECT_EQ(verdict_of(problem, "rstd", {rstd(squares)}), Verdict::kPassed);
  EXPECT_EQ(verdict_of(problem, "rstd", {rstd(squares - lost * lost)}),
            Verdict::kIncorrectNumerical);
}

TEST(LostRow, shows_in_db_of_65536_rows) {
  const Problem problem = make_problem(parse_case("layer_norm/backward/fused/f32/T=65536,H=2"));
  const std::vector<double>& dy = tensor_of(problem, "dy").input;
  std::vector<double> db = run_oracle(problem).at("db").value;
  EXPECT_EQ(verdict_of(problem, "db", db), Verdict::kPassed);
  db[0] -= dy[sizeable(dy, 2)];
  EXPECT_EQ(verdict_of(problem, "db", db), Verdict::kIncorrectNumerical);
}

}  // namespace
}  // namespace tigon
