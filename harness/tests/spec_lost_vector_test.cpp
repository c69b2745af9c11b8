// SPDX-License-Identifier: Apache-2.0
// A sum over a wide row that lost a few columns is beyond its budget.
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

// Of the output lse of a case of two rows.
Verdict verdict_of_losing(const char* dtype, int64_t lost) {
  const Problem problem = make_problem(parse_case(std::string("cross_entropy/forward/fused/") +
                                                  dtype + "/T=2,V=128256,reduction=none"));
  const auto tensor = [&](const std::string& name) -> const CaseTensor& {
    for (const CaseTensor& t : problem.tensors)
      if (t.info->name == name) return t;
    throw std::logic_error(name);
  };
  const std::vector<double>& logits = tensor("logits").input;
  const std::vector<double> got = {lse_without(logits, 0, lost), lse_without(logits, 1, lost)};
  const CaseTensor& lse = tensor("lse");
  return compare("lse", got, run_oracle(problem).at("lse"), lse.shape, budget_of(problem, lse))
      .verdict;
}

TEST(LostVector, shows_in_a_row_of_128256_columns) {
  for (const auto& [dtype, vector] : {std::pair{"f32", 4}, {"bf16", 8}, {"f16", 8}}) {
    EXPECT_EQ(verdict_of_losing(dtype, 0), Verdict::kPassed) << dtype;
    EXPECT_EQ(verdict_of_losing(dtype, vector), Verdict::kIncorrectNumerical) << dtype;
  }
}

}  // namespace
}  // namespace tigon
