// SPDX-License-Identifier: Apache-2.0
// The comparator: what passes, what fails, and how it says where.
#include "harness/judge/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "harness/judge/pattern.h"

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
  EXPECT_EQ(verdict_of({1, 2, 3}, {1, 2}), Verdict::kIncorrectNumerical);
  // As many elements as the oracle's, but not as the shape's.
  EXPECT_EQ(compare("y", {1, 2}, {{1, 2}}, {3}, {}).verdict, Verdict::kIncorrectNumerical);
}

TEST(Compare, every_element_counts) {
  for (const size_t size : {1u, 7u, 1025u, 70000u}) {
    const std::vector<double> want(size, 1);
    for (const size_t wrong : {size_t{0}, size / 2, size - 1}) {
      std::vector<double> got = want;
      got[wrong] = 1.5;
      EXPECT_EQ(verdict_of(got, want), Verdict::kIncorrectNumerical) << wrong << " of " << size;
    }
  }
}

TEST(Compare, the_budget_is_relative_to_the_oracle) {
  // 50 times too large, judged by its own size, would be within 98%.
  Budget loose;
  loose.reduction = 0x1p44;  // allows 4 * 2^22 * 2^-24 = 1
  EXPECT_EQ(verdict_of({50}, {1}, loose), Verdict::kIncorrectNumerical);
  EXPECT_EQ(verdict_of({1.9}, {1}, loose), Verdict::kPassed);
}

TEST(Compare, a_small_value_has_a_small_budget) {
  // An absolute tolerance above the size of the values would accept zeros.
  EXPECT_EQ(verdict_of({0}, {1e-5}), Verdict::kIncorrectNumerical);
  EXPECT_EQ(verdict_of({0}, {1e-30}), Verdict::kIncorrectNumerical);
  EXPECT_EQ(verdict_of({0}, {0x1p-125}), Verdict::kPassed);  // flushed
}

TEST(Compare, roundings_are_of_the_value_and_sums_of_the_scale) {
  Budget bf;
  bf.output = DType::kBF16;
  // Great cancellation: fp32 noise of the scale is allowed, roundings of it are not.
  const Expected cancelled{{1}, {1000}};
  EXPECT_EQ(compare("y", {1.5}, cancelled, {1}, bf).verdict, Verdict::kIncorrectNumerical);
  EXPECT_EQ(compare("y", {1.003}, cancelled, {1}, bf).verdict, Verdict::kPassed);
}

TEST(Compare, empty_passes) { EXPECT_EQ(verdict_of({}, {}), Verdict::kPassed); }

TEST(Compare, errors_that_are_all_near_their_bound_fail_by_the_root_mean_square) {
  Budget bf;
  bf.output = DType::kBF16;
  bf.element = DType::kBF16;
  std::vector<double> want, nearest, short_of;
  std::mt19937 bits(1);
  for (int i = 0; i < 4096; ++i) {
    want.push_back(1 + bits() * 0x1p-31);
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

TEST(Compare, one_error_that_all_elements_share_is_no_mean) {
  Budget bf;
  bf.output = DType::kBF16;
  bf.element = DType::kBF16;
  const double stored = 1, exact = 1 + 0.99 * 0x1p-9;  // all but half a rounding from it
  const std::vector<double> want(4096, exact * (1 - 0x1p-8)), got(4096, stored * (1 - 0x1p-8));
  const Comparison same = compare("y", got, {want}, {4096}, bf);
  EXPECT_EQ(same.verdict, Verdict::kPassed) << same.reason;
  EXPECT_TRUE(std::isnan(same.result.rms_over_budget));
}

TEST(Compare, errors_of_few_rows_may_be_a_little_more) {
  Budget bf;
  bf.output = DType::kBF16;
  bf.element = DType::kBF16;
  // x * rstd of every mantissa of bf16: for this rstd all errors are 0.35 to 0.65 of a unit.
  constexpr double kRstd = 1 + 0.35 / 128;
  std::vector<double> want, nearest, cut;
  for (int i = 0; i < 1024; ++i) {
    want.push_back((1 + i % 128 / 128.0) * std::ldexp(1, i / 128) * kRstd);
    nearest.push_back(static_cast<double>(bf16(want.back())));
    cut.push_back(want.back() * (1 - 0.8 * 0x1p-8));
  }
  EXPECT_EQ(compare("y", nearest, {want}, {1, 1024}, bf).verdict, Verdict::kPassed);
  // Eight rows of one error are a fault, and so are larger errors in a row.
  for (const auto& [got, rows] : {std::pair(nearest, 8), std::pair(cut, 1)}) {
    const Comparison wrong = compare("y", got, {want}, {rows, 1024 / rows}, bf);
    EXPECT_EQ(wrong.result.failing, 0);
    EXPECT_EQ(wrong.verdict, Verdict::kIncorrectNumerical);
  }
}

TEST(Compare, a_budget_that_is_nan_is_shown_as_the_worst) {
  const Comparison c = compare("y", {1, 2}, {{1, 2.0000001}, {kNan, 2}}, {2}, {});
  EXPECT_EQ(c.verdict, Verdict::kIncorrectNumerical);
  EXPECT_EQ(c.result.worst_index, std::vector<int64_t>{0});
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
  EXPECT_EQ(c.result.pattern, "only column 1 of 3");
  EXPECT_NE(c.reason.find("dx[1,1]: got 1.5 want 1,"), std::string::npos) << c.reason;
}

TEST(Compare, shows_the_neighbours_of_the_worst_element) {
  std::vector<double> want(14);
  for (size_t i = 0; i < want.size(); ++i) want[i] = static_cast<double>(i + 1);
  std::vector<double> got = want;
  got[10] = -kNan;  // of which the sign is not shown
  const Comparison c = compare("y", got, {want}, {2, 7}, {});
  ASSERT_EQ(c.result.neighbours.size(), 4u);
  EXPECT_EQ(c.result.neighbours[0].column, 1);
  EXPECT_EQ(c.result.neighbours[3].want, 13);
  EXPECT_NE(c.reason.find("beside it got 9 10 [nan] 12 13 want 9 10 [11] 12 13"), std::string::npos)
      << c.reason;
  got = want;
  got[7] = 1;
  EXPECT_NE(compare("y", got, {want}, {2, 7}, {}).reason.find("got [1] 9 10 want [8] 9 10"),
            std::string::npos);
}

Comparison with_verdict(Verdict verdict, const char* reason) { return {{}, verdict, reason, {}}; }

TEST(Judgement, one_bad_output_is_enough) {
  Judgement j;
  EXPECT_NE(j.verdict, Verdict::kPassed);  // nothing compared yet
  j.add(with_verdict(Verdict::kPassed, ""));
  EXPECT_EQ(j.verdict, Verdict::kPassed);
  EXPECT_EQ(j.reason, "");
  j.add(with_verdict(Verdict::kIncorrectNumerical, "first"));
  j.add(with_verdict(Verdict::kPassed, ""));
  EXPECT_EQ(j.verdict, Verdict::kIncorrectNumerical);
  j.add(with_verdict(Verdict::kNonfinite, "second"));
  j.add(with_verdict(Verdict::kIncorrectNumerical, "third"));
  EXPECT_EQ(j.verdict, Verdict::kNonfinite);
  EXPECT_EQ(j.reason, "first");
}

TEST(Pattern, says_where_the_failures_lie) {
  EXPECT_EQ(failure_pattern({0, 1, 2, 3}, {2, 2}), "every element");
  EXPECT_EQ(failure_pattern({6, 7, 14, 15}, {2, 8}), "only columns >= 6 of 8");
  EXPECT_EQ(failure_pattern({5, 13}, {2, 8}), "only column 5 of 8");
  EXPECT_EQ(failure_pattern({0, 1, 8, 9, 16, 17}, {3, 8}), "only columns < 2 of 8");
  EXPECT_EQ(failure_pattern({8, 9, 10, 11, 12, 13, 14, 15}, {4, 8}), "only row 1 of 4");
  EXPECT_EQ(failure_pattern({1, 3, 9, 11, 17, 19, 5, 13, 21}, {3, 8}),
            "only every 2nd column from 1");
  EXPECT_EQ(failure_pattern({10, 11, 12, 26, 27, 28}, {2, 16}), "only columns 10 to 12 of 16");
  EXPECT_EQ(
      failure_pattern({16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}, {5, 8}),
      "only rows 2 to 3 of 5");
  EXPECT_EQ(failure_pattern({0, 9, 18}, {3, 8}), "only columns < 3 of 8");
  EXPECT_EQ(failure_pattern({3}, {9}), "only element 3 of 9");
  EXPECT_EQ(failure_pattern({0, 3, 4, 8}, {9}), "");
}

// Elements [first, first + width) of every `period`.
std::vector<int64_t> periodic(int64_t period, int64_t first, int64_t width, int64_t length) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < length; ++i)
    if (i % period >= first && i % period < first + width) all.push_back(i);
  return all;
}

TEST(Pattern, names_the_lane_of_a_warp) {
  EXPECT_EQ(failure_pattern(periodic(32, 17, 1, 128), {128}),
            "only every 32nd element from 17 (lane 17 of a warp)");
  EXPECT_EQ(failure_pattern(periodic(128, 20, 4, 512), {512}),
            "only elements 20 to 23 of every 128 (lane 5 of a warp, 4 elements a lane)");
  EXPECT_EQ(failure_pattern(periodic(64, 3, 4, 512), {512}), "only elements 3 to 6 of every 64");
  std::vector<int64_t> all_but_one = periodic(128, 20, 4, 512);
  all_but_one.pop_back();
  EXPECT_EQ(failure_pattern(all_but_one, {512}), "");
}

TEST(Pattern, names_a_head) {
  std::vector<int64_t> failing;  // [T=3, heads=4, D=8], head 2
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t d = 0; d < 8; ++d) failing.push_back((t * 4 + 2) * 8 + d);
  EXPECT_EQ(failure_pattern(failing, {3, 4, 8}), "only dim-1 slice 2 of 4");
  failing.resize(16);
  EXPECT_EQ(failure_pattern(failing, {3, 4, 8}),
            "only dim-0 slices < 2 of 3, only dim-1 slice 2 of 4");
}

TEST(Compare, tells_the_first_element_beside_the_worst) {
  const std::vector<double> want = {1, 2, 3, 4};
  const Comparison c = compare("y", {1, 2.5, 3, 9}, {want}, {2, 2}, {});
  EXPECT_EQ(c.result.first_index, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(c.result.first_got, 2.5);
  EXPECT_EQ(c.result.first_want, 2);
  EXPECT_GT(c.result.first_error, 1);
  EXPECT_EQ(c.result.worst_index, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(c.failing, (std::vector<int64_t>{1, 3}));
  EXPECT_TRUE(compare("y", want, {want}, {2, 2}, {}).result.first_index.empty());
}

}  // namespace
}  // namespace tigon
