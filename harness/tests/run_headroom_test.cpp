// SPDX-License-Identifier: Apache-2.0
// Distribution of errors, and their ratio to the baseline's.
#include "harness/run/memory/headroom.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tigon {
namespace {

CheckResult result_of(const char* impl, double error, double largest, Verdict verdict) {
  CheckResult r;
  r.c.op = "rms_norm";
  r.c.pass = "forward";
  r.c.impl = impl;
  r.c.dtype = DType::kBF16;
  r.c.axes = {{"T", 1}, {"H", 8}};
  r.executor = "fast";
  r.verdict = verdict;
  OutputResult o;
  o.name = "y";
  o.error_over_budget = error;
  o.rms_over_budget = std::nan("");
  o.bias = -error;
  o.largest_error = largest;
  r.outputs = {o};
  return r;
}

TEST(Headroom, has_the_quantiles_of_passed_cases) {
  Headroom headroom;
  for (int i = 1; i <= 200; ++i) {
    CheckResult r = result_of("fused", i / 250.0, 1, Verdict::kPassed);
    r.c.seed = static_cast<uint64_t>(i);
    headroom.add(r);
  }
  headroom.add(result_of("fused", 3, 1, Verdict::kIncorrectNumerical));
  const auto rows = headroom.rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].cases, 200);
  EXPECT_DOUBLE_EQ(rows[0].max, 0.8);
  EXPECT_DOUBLE_EQ(rows[0].p99, 198 / 250.0);
  EXPECT_DOUBLE_EQ(rows[0].p50, 0.4);
  EXPECT_DOUBLE_EQ(rows[0].bias_max, 0.8);
  EXPECT_EQ(rows[0].target, 0.9);
  EXPECT_NE(rows[0].worst_case.find("seed=200"), std::string::npos);
}

TEST(NaiveErrors, divides_by_the_error_of_the_baseline_on_the_same_case) {
  NaiveErrors naive;
  CheckResult baseline = result_of("naive", 0.1, 4e-3, Verdict::kPassed);
  naive.complete(&baseline);
  EXPECT_TRUE(std::isnan(baseline.outputs[0].naive_ratio));
  CheckResult fused = result_of("fused", 0.1, 1e-3, Verdict::kPassed);
  naive.complete(&fused);
  EXPECT_DOUBLE_EQ(fused.outputs[0].naive_ratio, 0.25);
  EXPECT_EQ(naive_text(fused), "");  // nothing fails
  fused.outputs[0].failing = 1;
  EXPECT_EQ(naive_text(fused), "; y: 0.25 times the error of naive");
  CheckResult other = result_of("fused", 0.1, 1e-3, Verdict::kPassed);
  other.c.seed = 7;
  naive.complete(&other);
  EXPECT_TRUE(std::isnan(other.outputs[0].naive_ratio));
}

}  // namespace
}  // namespace tigon
