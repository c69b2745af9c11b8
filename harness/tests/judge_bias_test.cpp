// SPDX-License-Identifier: Apache-2.0
// Errors that lean to one side fail where no element is over its budget and the root mean square is
// what it may be; errors of correct kernels do not, however the values are made.
#include "harness/judge/bias.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "harness/judge/compare.h"

namespace tigon {
namespace {

double rounded(double value, DType type) {
  if (type == DType::kBF16) return static_cast<double>(bf16(value));
  if (type == DType::kF16) return static_cast<double>(f16(value));
  return static_cast<double>(static_cast<float>(value));
}

// Towards 0 instead of to the nearest.
double cut(double value, DType type) {
  const double nearest = rounded(value, type);
  if (std::abs(nearest) <= std::abs(value)) return nearest;
  if (type == DType::kF32)
    return static_cast<double>(std::nextafter(static_cast<float>(nearest), 0.0F));
  const bool is_f16 = type == DType::kF16;
  const auto bits = static_cast<uint16_t>((is_f16 ? f16(nearest).bits : bf16(nearest).bits) - 1);
  return is_f16 ? static_cast<double>(f16::from_bits(bits))
                : static_cast<double>(bf16::from_bits(bits));
}

Budget budget_of(DType output, double terms) {
  Budget b;
  b.output = output;
  b.element = output;
  b.reduction = terms;
  return b;
}

// Values of rows and columns, which a kernel computes with an error and stores in a way.
struct Made {
  int64_t rows = 64, columns = 64;
  DType type = DType::kBF16;
  std::function<double(int64_t row, std::mt19937_64&)> value = [](int64_t, std::mt19937_64& r) {
    return std::normal_distribution<double>()(r);
  };
  std::function<double(double, std::mt19937_64&)> error = [](double v, std::mt19937_64& r) {
    return v * std::normal_distribution<double>(0, 0x1p-24)(r);
  };
  double (*store)(double, DType) = rounded;

  Comparison compared(uint64_t seed) const {
    std::mt19937_64 random(seed);
    std::vector<double> want, got;
    for (int64_t i = 0; i < rows * columns; ++i) {
      want.push_back(value(i / columns, random));
      got.push_back(store(want.back() + error(want.back(), random), type));
    }
    return compare("y", got, {want}, {rows, columns},
                   budget_of(type, static_cast<double>(columns)));
  }
};

TEST(Bias, errors_of_a_correct_kernel_cancel_at_every_size) {
  std::mt19937_64 sizes(7);
  for (const DType type : {DType::kF32, DType::kBF16, DType::kF16})
    for (uint64_t seed = 0; seed < 60; ++seed) {
      Made right{.rows = static_cast<int64_t>(16 + sizes() % 200),
                 .columns = static_cast<int64_t>(1 + sizes() % 100),
                 .type = type};
      const Comparison c = right.compared(seed);
      EXPECT_EQ(c.verdict, Verdict::kPassed) << c.reason;
      EXPECT_FALSE(c.result.one_sided_over_budget > 0.5) << right.rows << " x " << right.columns;
    }
}

TEST(Bias, values_whose_roundings_all_go_one_way_are_no_fault) {
  // x * rstd of bf16 mantissas with one rstd for all rows: rounded down, nearly all of them.
  Made grid{.value = [](int64_t, std::mt19937_64& r) {
    return (1 + static_cast<double>(r() % 128) / 128) * (1 + 0.2 / 128);
  }};
  EXPECT_EQ(grid.compared(1).verdict, Verdict::kPassed) << grid.compared(1).reason;
  // Equal rows and equal elements: whatever the error is, all have it.
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const double value = std::normal_distribution<double>()(random);
    Made equal{.value = [=](int64_t, std::mt19937_64&) { return value; },
               .error = [](double v, std::mt19937_64&) { return v * 0x1.8p-23; }};
    EXPECT_EQ(equal.compared(seed).verdict, Verdict::kPassed) << equal.compared(seed).reason;
  }
}

TEST(Bias, what_all_rows_share_is_one_error) {
  // f32: rows of one value next to a tie; and of nearly one value, times a reciprocal that is off.
  const Budget b = budget_of(DType::kF32, 2);
  std::vector<double> want(129, -296.14985910), got(129, -296.14984131);
  EXPECT_EQ(compare("lse", got, {want, std::vector<double>(129, 40)}, {129}, b).verdict,
            Verdict::kPassed);
  std::mt19937_64 random(17);
  for (size_t i = 0; i < want.size(); ++i) {
    want[i] -= std::normal_distribution<double>(0, 1e-3)(random);
    got[i] = rounded(want[i] * (1 + 0x1p-25), DType::kF32);
  }
  const Comparison c = compare("lse", got, {want, std::vector<double>(129, 40)}, {129}, b);
  EXPECT_EQ(c.verdict, Verdict::kPassed) << c.reason;
}

// Every second row is 1 + w of the output's type, of which half are ties, the others are normal.
double next_to_ties(int64_t row, std::mt19937_64& random, DType type) {
  const double normal = std::normal_distribution<double>(1, 0.5)(random);
  return row % 2 == 0 ? normal : 1 + rounded(normal, type);
}

Made with_ties(DType type) {
  return {.rows = 231, .columns = 200, .type = type, .value = [=](int64_t row, auto& random) {
            return next_to_ties(row, random, type);
          }};
}

TEST(Bias, ties_that_are_all_rounded_to_one_side_are_no_fault) {
  for (const DType type : {DType::kBF16, DType::kF16})
    for (const double side : {1.0, -1.0}) {
      Made right = with_ties(type);
      right.error = [=](double v, std::mt19937_64&) { return side * v * 0x1p-23; };
      const Comparison c = right.compared(19);
      EXPECT_EQ(c.verdict, Verdict::kPassed) << c.reason;
    }
}

TEST(Bias, ties_hide_no_fault) {
  for (const DType type : {DType::kBF16, DType::kF16})
    for (const double side : {1.0, -1.0}) {
      Made losing = with_ties(type);
      losing.error = [=](double v, std::mt19937_64&) { return side * v * 0.5 / 200; };
      EXPECT_GT(losing.compared(23).result.one_sided_over_budget, 1);
    }
  Made truncating = with_ties(DType::kF16);
  truncating.store = cut;
  EXPECT_GT(truncating.compared(29).result.one_sided_over_budget, 1);
}

TEST(Bias, what_a_correct_kernel_may_be_off_and_no_more_is_allowed) {
  for (const DType type : {DType::kF32, DType::kBF16, DType::kF16})
    for (const double side : {1.0, -1.0}) {
      Made off{.rows = 500, .columns = 200, .type = type};
      const auto over = [&](double share) {
        off.error = [=](double v, std::mt19937_64&) {
          const Magnitudes m{std::abs(v), std::abs(v)};
          return std::copysign(share * one_sided_error(budget_of(type, 200), m), side * v);
        };
        return off.compared(31).result.one_sided_over_budget;
      };
      EXPECT_LT(over(0.9), 1);
      EXPECT_GT(over(1.25), 1);
    }
}

TEST(Bias, a_store_that_truncates_fails_in_small_cases_too) {
  for (const DType type : {DType::kBF16, DType::kF16}) {
    Made truncating{.rows = 20, .columns = 30, .type = type, .store = cut};
    const Comparison c = truncating.compared(3);  // too few elements for a root mean square
    EXPECT_TRUE(std::isnan(c.result.rms_over_budget));
    EXPECT_GT(c.result.one_sided_over_budget, 1);
    EXPECT_EQ(c.verdict, Verdict::kIncorrectNumerical);
  }
}

TEST(Bias, a_small_term_that_is_always_lost_fails) {
  // A column of 1024 is left out of a sum of squares: y is too large by half of that.
  Made losing{.rows = 64, .columns = 1024, .error = [](double v, std::mt19937_64&) {
                return v * 0.5 / 1024;
              }};
  const Comparison c = losing.compared(5);
  EXPECT_EQ(c.result.failing, 0);
  EXPECT_LT(c.result.rms_over_budget, 1);
  EXPECT_EQ(c.verdict, Verdict::kIncorrectNumerical);
  EXPECT_NE(c.reason.find("lean to one side"), std::string::npos) << c.reason;
}

TEST(Bias, of_f32_what_is_less_than_the_spread_of_one_row_adds_up_over_rows) {
  // A sum of 128,256 in 32 lanes whose errors are all on one side.
  std::vector<double> want, got;
  std::mt19937_64 random(11);
  const Budget b = budget_of(DType::kF32, 1 + 128256 / 32.0);
  for (int t = 0; t < 200; ++t) {
    want.push_back(10 + std::normal_distribution<double>()(random));
    const double noise = std::normal_distribution<double>(0, 0.1)(random);
    got.push_back(want.back() - expected_spread(b, {want.back(), want.back()}) * (0.5 + noise));
  }
  const Comparison c = compare("lse", got, {want}, {200}, b);
  EXPECT_EQ(c.result.failing, 0);
  EXPECT_EQ(c.verdict, Verdict::kIncorrectNumerical) << c.result.one_sided_over_budget;
}

TEST(Bias, stored_intermediates_may_share_a_rounding) {
  Budget b = budget_of(DType::kBF16, 16);
  std::vector<double> want, got;
  std::mt19937_64 random(13);
  for (int i = 0; i < 4000; ++i) {
    want.push_back(std::normal_distribution<double>()(random));
    got.push_back(rounded(want.back() * (1 + 0x1p-10), DType::kBF16));
  }
  EXPECT_EQ(compare("y", got, {want}, {100, 40}, b).verdict, Verdict::kIncorrectNumerical);
  b.element_roundings = 1;
  EXPECT_EQ(compare("y", got, {want}, {100, 40}, b).verdict, Verdict::kPassed);
}

}  // namespace
}  // namespace tigon
