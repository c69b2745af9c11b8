// SPDX-License-Identifier: Apache-2.0
// Order statistics, the stopping rule and shares of ceilings.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/measure/roofline.h"
#include "harness/measure/statistics.h"

namespace tigon {
namespace {

TEST(Statistics, quartiles_interpolate_as_type_7) {
  const Summary s = summarize({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(s.median, 2.5);
  EXPECT_DOUBLE_EQ(s.q1, 1.75);
  EXPECT_DOUBLE_EQ(s.q3, 3.25);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.max, 4);
  EXPECT_EQ(s.n, 4u);
}

TEST(Statistics, no_sample_gives_nan_and_never_zero) {
  EXPECT_TRUE(std::isnan(summarize({}).median));
  EXPECT_EQ(summarize({}).n, 0u);
}

TEST(StoppingRule, takes_no_fewer_samples_than_hold_the_median_with_99_percent_confidence) {
  EXPECT_LE(2 / std::pow(2.0, static_cast<double>(StoppingRule().least)), 0.01);
}

TEST(StoppingRule, wants_enough_samples_then_time_or_agreement) {
  const StoppingRule rule{.warm_up = 0, .least = 3, .most = 10, .seconds = 1, .agreement = 0.01};
  EXPECT_FALSE(rule.enough({1, 1}, 100)) << "fewer than the least, however long it took";
  EXPECT_TRUE(rule.enough({1, 2, 3}, 1.5)) << "out of time";
  EXPECT_FALSE(rule.enough({1, 1, 1}, 0.1)) << "too few to compare halves";
  EXPECT_TRUE(rule.enough({1, 1, 1, 1, 1, 1}, 0.1)) << "both halves agree";
  EXPECT_FALSE(rule.enough({2, 2, 2, 1, 1, 1}, 0.1)) << "still getting faster";
  EXPECT_TRUE(rule.enough(std::vector<double>(10, 1.0), 0));
}

const Ceilings kCeilings = {
    {"copy", 4e12}, {"read", 4.5e12}, {"triad", 4.2e12}, {"gemm_bf16", 8e14}};

TEST(Roofline, says_which_ceiling_is_nearer_and_the_share_of_each) {
  const Roofline memory = roofline_of(1e-3, 2e9, 1e9, 1e9, DType::kBF16, kCeilings);
  EXPECT_DOUBLE_EQ(memory.share_of_copy, 0.5);
  EXPECT_TRUE(memory.memory_bound);
  EXPECT_EQ(memory.impossible, "");
  const Roofline compute = roofline_of(1e-3, 1e6, 4e11, 4e11, DType::kBF16, kCeilings);
  EXPECT_DOUBLE_EQ(compute.share_of_gemm, 0.5);
  EXPECT_FALSE(compute.memory_bound);
}

TEST(Roofline, a_result_above_its_ceiling_is_impossible) {
  EXPECT_EQ(roofline_of(1e-3, 4.6e9, 1, 1, DType::kBF16, kCeilings).impossible, "")
      << "a read may be faster than the copy, and 5% is allowed";
  EXPECT_NE(roofline_of(1e-3, 4.8e9, 1, 1, DType::kBF16, kCeilings).impossible, "");
  EXPECT_EQ(roofline_of(1e-3, 1, 9.9e11, 9.9e11, DType::kBF16, kCeilings).impossible, "")
      << "a matrix rate depends on the data: 25% is allowed";
  EXPECT_NE(roofline_of(1e-3, 1, 1.01e12, 1.01e12, DType::kBF16, kCeilings).impossible, "");
}

TEST(Roofline, a_library_may_leave_out_what_another_pass_has_kept) {
  const Roofline r = roofline_of(1e-3, 1, 1.2e12, 8e11, DType::kBF16, kCeilings);
  EXPECT_EQ(r.impossible, "");
  EXPECT_DOUBLE_EQ(r.share_of_gemm, 1.5) << "of the formula's operations";
}

TEST(Roofline, without_ceilings_there_is_no_share) {
  const Roofline r = roofline_of(1e-3, 1e9, 1e9, 1e9, DType::kF32, {});
  EXPECT_TRUE(std::isnan(r.share_of_copy));
  EXPECT_TRUE(std::isnan(r.share_of_gemm));
  EXPECT_EQ(r.impossible, "");
}

}  // namespace
}  // namespace tigon
