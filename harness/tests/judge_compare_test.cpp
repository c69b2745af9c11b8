// The comparator: what passes, what fails, and how it says where.
#include "harness/judge/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/run/inputs.h"

namespace tigon {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Verdict verdict_of(std::vector<double> got, std::vector<double> want, const Budget& budget = {}) {
  const auto size = static_cast<int64_t>(want.size());
  return compare("y", got, {want}, {size}, budget).verdict;
}

TEST(Compare, equal_values_pass) {
  EXPECT_EQ(verdict_of({1, -2, 0}, {1, -2, 0}), Verdict::kPassed);
}

TEST(Compare, an_error_within_the_budget_passes_and_one_beyond_it_fails) {
  const Budget budget;
  const double allowed = allowed_error(budget, {3, 3, 0, 1});
  EXPECT_EQ(verdict_of({3 + 0.99 * allowed}, {3}), Verdict::kPassed);
  EXPECT_EQ(verdict_of({3 + 1.01 * allowed}, {3}), Verdict::kIncorrectNumerical);
  EXPECT_EQ(verdict_of({3 - 1.01 * allowed}, {3}), Verdict::kIncorrectNumerical);
}

TEST(Compare, budget_is_the_formula) {
  Budget b;
  b.output = DType::kBF16;
  b.element = DType::kBF16;
  b.roundings = 2;
  b.reduction = 16;
  b.elementary = 10;
  b.intermediate_roundings = 3;
  b.element_roundings = 5;
  const double u = 0x1p-8, a = 0x1p-24;
  EXPECT_NEAR(allowed_error(b, {7, 11, 13, 0}),
              (2 * u + u / 4) * 7 + (4 * 4 + 10) * a * 11 + 4 * 3 * u * 13 + 5 * u * 11, 1e-15);
}

TEST(Compare, nan_fails_closed) {
  EXPECT_EQ(verdict_of({kNan}, {1}), Verdict::kNonfinite);
  EXPECT_EQ(verdict_of({1}, {kNan}), Verdict::kNonfinite);
  EXPECT_EQ(verdict_of({kNan}, {kNan}), Verdict::kPassed);
  // A scale that is not a number allows nothing.
  const Expected expected{{1}, {kNan}};
  EXPECT_EQ(compare("y", {1}, expected, {1}, {}).verdict, Verdict::kIncorrectNumerical);
}

TEST(Compare, infinities_must_match_in_sign) {
  EXPECT_EQ(verdict_of({kInfinity}, {kInfinity}), Verdict::kPassed);
  EXPECT_EQ(verdict_of({-kInfinity}, {kInfinity}), Verdict::kNonfinite);
  EXPECT_EQ(verdict_of({kInfinity}, {1e30}), Verdict::kNonfinite);
  EXPECT_EQ(verdict_of({1e30}, {kInfinity}), Verdict::kNonfinite);
  EXPECT_EQ(verdict_of({kInfinity}, {kNan}), Verdict::kNonfinite);
}

TEST(Compare, overflow_of_the_output_type_is_its_infinity) {
  Budget f16;
  f16.output = DType::kF16;
  EXPECT_EQ(verdict_of({kInfinity}, {70000}, f16), Verdict::kPassed);
  EXPECT_EQ(verdict_of({-kInfinity}, {70000}, f16), Verdict::kNonfinite);
  EXPECT_EQ(verdict_of({kInfinity}, {60000}, f16), Verdict::kNonfinite);
}

TEST(Compare, a_missing_element_fails) {
  EXPECT_EQ(verdict_of({1}, {1, 2}), Verdict::kIncorrectNumerical);
}

TEST(Compare, empty_passes) { EXPECT_EQ(verdict_of({}, {}), Verdict::kPassed); }

TEST(Compare, errors_that_are_all_near_their_bound_fail_by_the_root_mean_square) {
  Budget bf;
  bf.output = DType::kBF16;
  bf.element = DType::kBF16;
  std::vector<double> want, nearest, short_of;
  for (uint64_t i = 0; i < 4096; ++i) {
    want.push_back(1 + std::abs(random_normal(1, i)));
    nearest.push_back(static_cast<double>(bf16(want.back())));
    short_of.push_back(want.back() * (1 - 0.95 * 0x1p-8));
  }
  const Expected expected{want};
  const Comparison right = compare("y", nearest, expected, {4096}, bf);
  EXPECT_EQ(right.verdict, Verdict::kPassed) << right.reason;
  EXPECT_LT(right.result.rms_over_budget, 0.8);
  const Comparison wrong = compare("y", short_of, expected, {4096}, bf);
  EXPECT_EQ(wrong.verdict, Verdict::kIncorrectNumerical);
  EXPECT_EQ(wrong.result.failing, 0);
  EXPECT_GT(wrong.result.rms_over_budget, 1);
  EXPECT_LT(wrong.result.bias, -10);
}

TEST(Compare, names_the_worst_element) {
  const std::vector<double> want(6, 1);
  std::vector<double> got = want;
  got[4] = 1.5;
  got[1] = 1.25;
  const Comparison c = compare("dx", got, {want}, {2, 3}, {});
  EXPECT_EQ(c.result.worst_index, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(c.result.got, 1.5);
  EXPECT_EQ(c.result.want, 1);
  EXPECT_EQ(c.result.failing, 2);
  EXPECT_NE(c.reason.find("dx[1,1]: got 1.5 want 1,"), std::string::npos) << c.reason;
}

TEST(Pattern, says_where_the_failures_lie) {
  EXPECT_EQ(failure_pattern({0, 1, 2, 3}, {2, 2}), "every element");
  EXPECT_EQ(failure_pattern({6, 7, 14, 15}, {2, 8}), "only columns >= 6 of 8");
  EXPECT_EQ(failure_pattern({5, 13}, {2, 8}), "only column 5 of 8");
  EXPECT_EQ(failure_pattern({0, 1, 8, 9, 16, 17}, {3, 8}), "only columns < 2 of 8");
  EXPECT_EQ(failure_pattern({8, 9, 10, 11, 12, 13, 14, 15}, {4, 8}), "only row 1 of 4");
  EXPECT_EQ(failure_pattern({1, 3, 9, 11, 17, 19, 5, 13, 21}, {3, 8}),
            "only every 2th column from 1");
  EXPECT_EQ(failure_pattern({0, 9, 18}, {3, 8}), "only columns < 3 of 8");
  EXPECT_EQ(failure_pattern({3}, {9}), "only element 3 of 9");
  EXPECT_EQ(failure_pattern({0, 3, 4, 8}, {9}), "");
}

}  // namespace
}  // namespace tigon
