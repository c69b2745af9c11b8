// SPDX-License-Identifier: Apache-2.0
// Test data: the same everywhere, and distributed as said.
#include "harness/run/inputs/inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "harness/run/check.h"
#include "harness/run/inputs/distributions.h"
#include "harness/run/memory/convert.h"

namespace tigon {
namespace {

constexpr Axis V{"V", "classes"};

std::vector<double> filled(const InputPlan& plan, std::vector<int64_t> shape, Binding binding = {},
                           uint64_t seed = 42) {
  std::vector<double> values;
  fill(plan, seed, shape, binding, &values);
  return values;
}

TEST(Random, has_the_same_bits_everywhere) {
  // The first output of SplitMix64 with seed 1.
  EXPECT_EQ(random_bits(1, 0), 0x910a2dec89025cc1u);
  const double first = random_normal(stream_key(42, "x"), 0);
  EXPECT_EQ(first, random_normal(stream_key(42, "x"), 0));
  EXPECT_NE(first, random_normal(stream_key(43, "x"), 0));
  EXPECT_NE(first, random_normal(stream_key(42, "w"), 0));
}

TEST(Random, normal_has_the_moments_of_a_normal_distribution) {
  double sum = 0, squares = 0, fourth = 0;
  constexpr int kCount = 200000;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double v = random_normal(7, i);
    EXPECT_LE(std::abs(v), 8.2);
    sum += v;
    squares += v * v;
    fourth += v * v * v * v;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.01);
  EXPECT_NEAR(fourth / kCount, 3, 0.1);
}

TEST(Fill, normal_has_mean_and_scale) {
  const auto v = filled({"x", "normal", {{"mean", 5}, {"scale", 0.5}}}, {100, 100});
  double sum = 0, squares = 0;
  for (double x : v) {
    sum += x;
    squares += (x - 5) * (x - 5);
  }
  EXPECT_NEAR(sum / 1e4, 5, 0.02);
  EXPECT_NEAR(squares / 1e4, 0.25, 0.01);
}

TEST(Fill, mixed_rows_has_a_zero_row_and_a_small_one) {
  const auto v = filled({"x", "mixed_rows"}, {4, 8});
  for (int j = 0; j < 8; ++j) {
    EXPECT_EQ(v[static_cast<size_t>(j)], 0);
    EXPECT_LT(std::abs(v[static_cast<size_t>(8 + j)]), 0.01);
  }
}

TEST(Fill, targets_are_classes_or_ignored) {
  const Binding b = {{"V", 7}, {"ignore_index", -100}};
  int ignored = 0;
  const auto v = filled({"target", "targets", {{"ignored", 0.25}}, V}, {1000}, b);
  for (double t : v) {
    if (t == -100) {
      ++ignored;
      continue;
    }
    EXPECT_EQ(t, std::floor(t));
    EXPECT_TRUE(t >= 0 && t < 7);
  }
  EXPECT_NEAR(ignored, 250, 50);
  const auto all = filled({"target", "targets", {{"ignored", 1}}, V}, {50}, b);
  for (double t : all) EXPECT_EQ(t, -100);
  const auto invalid = filled({"target", "targets", {{"invalid", 1}}, V}, {50}, b);
  for (double t : invalid) EXPECT_TRUE(t == 7 || t == -1);
}

TEST(Fill, indices_need_their_size) {
  EXPECT_THROW(filled({"target", "targets"}, {3}, {{"V", 7}}), std::logic_error);
}

TEST(Fill, confident_logits_peak_at_the_target) {
  const Binding b = {{"V", 50}, {"ignore_index", -100}};
  const auto targets = filled({"target", "targets", {}, V}, {20}, b);
  const auto logits = filled({"logits", "confident", {{"margin", 100}}}, {20, 50}, b);
  for (size_t t = 0; t < 20; ++t)
    EXPECT_GT(logits[t * 50 + static_cast<size_t>(targets[t])], 50) << t;
}

TEST(Fill, last_block_has_its_maximum_in_the_last_column) {
  const auto v = filled({"x", "last_block"}, {3, 9});
  for (size_t t = 0; t < 3; ++t)
    for (size_t j = 0; j < 8; ++j) EXPECT_LT(v[t * 9 + j], v[t * 9 + 8]);
}

TEST(Fill, rotary_angles_are_those_of_the_paper) {
  const auto cos = filled({"cos", "rotary_cos"}, {5, 4});
  const auto sin = filled({"sin", "rotary_sin"}, {5, 4});
  EXPECT_DOUBLE_EQ(cos[3 * 4 + 2], std::cos(3 * std::pow(10000.0, -0.5)));
  EXPECT_DOUBLE_EQ(sin[4 * 4 + 1], std::sin(4 * std::pow(10000.0, -0.25)));
}

TEST(Fill, special_rows_lie_among_normal_ones) {
  const auto row = [](const std::vector<double>& v, size_t r) {
    return std::vector<double>(v.begin() + static_cast<int64_t>(8 * r),
                               v.begin() + static_cast<int64_t>(8 * r + 8));
  };
  const auto plain = filled({"x", "normal"}, {4, 8});
  const auto equal = filled({"x", "equal_rows"}, {4, 8});
  EXPECT_EQ(row(equal, 2), std::vector<double>(8, row(plain, 2)[0]));
  EXPECT_EQ(row(equal, 1), row(plain, 1));
  const auto hot = filled({"x", "one_hot", {{"value", 3}}}, {4, 8});
  EXPECT_EQ(row(hot, 0), (std::vector<double>{0, 0, 0, 0, 0, 0, 0, 3}));
  const auto negative_zero = filled({"x", "rows_of", {{"value", -0.0}}}, {4, 8});
  EXPECT_TRUE(std::signbit(negative_zero[0]));
  const auto nan = filled({"x", "one_element", {{"value", std::nan("")}}}, {4, 8});
  EXPECT_TRUE(std::isnan(nan[7]));
  EXPECT_EQ(row(nan, 3), row(plain, 3));
  int count = 0;
  for (double v : nan) count += std::isnan(v);
  EXPECT_EQ(count, 2);
}

TEST(Fill, largest_and_denormal_rows_depend_on_the_type) {
  for (DType t : {DType::kF32, DType::kBF16, DType::kF16}) {
    std::vector<double> v;
    fill({"x", "largest_rows"}, 42, {2, 8}, {}, &v, t);
    EXPECT_EQ(widen(narrow(v, t).data(), 1, t)[0], v[0]) << name_of(t);  // finite and exact
    fill({"x", "denormal_rows"}, 42, {2, 64}, {}, &v, t);
    const double smallest_normal = t == DType::kF16 ? 0x1p-14 : 0x1p-126;
    int below = 0;
    for (size_t i = 0; i < 64; ++i) below += std::abs(v[i]) < smallest_normal;
    EXPECT_GE(below, 30) << name_of(t);
  }
}

TEST(Catalogue, every_input_set_is_in_it) {
  for (const OpSpec& op : all_ops())
    for (const InputSet& set : op.inputs)
      for (const InputPlan& plan : set.plans)
        EXPECT_NE(find_distribution(plan.distribution), nullptr) << op.name << " " << set.name;
}

TEST(Catalogue, every_op_meets_nan_infinity_and_the_largest_values) {
  for (const OpSpec& op : all_ops()) {
    std::set<std::string> names;
    for (const InputSet& set : op.inputs) names.insert(set.name);
    for (const char* name : {"one_nan", "one_inf", "largest_rows", "denormal_rows"})
      EXPECT_EQ(names.count(name), 1u) << op.name << " " << name;
  }
}

// In a tensor of every pass the last row starts beyond 2^31 elements and 2^32 bytes.
TEST(Catalogue, every_pass_has_a_case_beyond_32_bits) {
  for (const OpSpec& op : all_ops()) {
    CheckRequest request;
    request.ops = {op.name};
    request.tier = Tier::kHuge;
    std::set<std::string> beyond, passes;
    for (const Case& c : select_cases(request)) {
      passes.insert(c.pass);
      const Pass& pass = *find_pass(op, c.pass);
      const Binding binding = binding_of(c, op, pass);
      for (const TensorInfo& t : pass.tensors) {
        double row = 1;
        for (size_t d = 1; d < t.shape.size(); ++d) row *= t.shape[d](binding);
        const double start = (t.shape[0](binding) - 1) * row;
        const auto bytes = static_cast<double>(size_of(t.dtype.at(c.dtype)));
        if (c.gap == 0 && start > 0x1p31 && start * bytes > 0x1p32) beyond.insert(c.pass);
      }
    }
    EXPECT_EQ(passes.size(), op.passes.size()) << op.name;
    EXPECT_EQ(beyond, passes) << op.name;
  }
}

TEST(Fill, an_unknown_distribution_is_an_error) {
  EXPECT_THROW(filled({"x", "gaussian"}, {1}), std::logic_error);
}

}  // namespace
}  // namespace tigon
