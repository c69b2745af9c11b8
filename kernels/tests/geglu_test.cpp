// SPDX-License-Identifier: Apache-2.0
// geglu against a plain loop in double.
#include "kernels/geglu/geglu.h"

#include <limits>

#include "kernels/tests/test_tensor.h"

namespace tigon::geglu {
namespace {

template <class P>
class Geglu : public testing::Test {};
using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(Geglu, Policies);

struct Size {
  int64_t t, f;
};
constexpr Size kSizes[] = {{1, 1}, {3, 7}, {2, 8}, {5, 33}, {3, 4099}};
constexpr Approximate kForms[] = {Approximate::kTanh, Approximate::kNone};

// Phi(x) and Phi'(x), or the form by tanh.
struct Normal {
  double cdf, derivative;
};
Normal normal(double x, Approximate form) {
  if (form == Approximate::kNone)
    return {0.5 * std::erfc(-x / std::sqrt(2.0)), std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI)};
  const double slope = 2 * std::sqrt(2 / M_PI), z = slope * (x + 0.044715 * x * x * x);
  const double s = 1 / (1 + std::exp(-z)), complement = 1 / (1 + std::exp(z));
  return {s, s * complement * slope * (1 + 3 * 0.044715 * x * x)};
}

TYPED_TEST(Geglu, Forward) {
  using T = typename TypeParam::Elem;
  for (const Approximate form : kForms)
    for (const Size& c : kSizes) {
      SCOPED_TRACE(testing::Message() << "T=" << c.t << " F=" << c.f);
      TestTensor<T> a(c.t, c.f), b(c.t, c.f), y(c.t, c.f);
      Forward<TypeParam> args{{}, a.const_view(), b.const_view(), y.view(), form};
      const Status status = forward(args, nullptr);
      ASSERT_TRUE(status.ok()) << status.reason;
      y.download();
      for (int64_t i = 0; i < c.t; ++i)
        for (int64_t j = 0; j < c.f; ++j) {
          const double x = a.made(i, j), expected = x * normal(x, form).cdf * b.made(i, j);
          const double scale = std::fabs(expected) * (1 + x * x * x * x);
          ASSERT_NEAR(y.got(i, j), expected, budget<T>(expected, scale, 1, 40)) << i << ", " << j;
        }
    }
}

TYPED_TEST(Geglu, BackwardInPlace) {
  using T = typename TypeParam::Elem;
  for (const Approximate form : kForms)
    for (const Size& c : kSizes) {
      SCOPED_TRACE(testing::Message() << "T=" << c.t << " F=" << c.f);
      TestTensor<T> a(c.t, c.f), b(c.t, c.f), dy(c.t, c.f);
      const Status status = backward(
          Backward<TypeParam>{
              {}, dy.const_view(), a.const_view(), b.const_view(), a.view(), b.view(), form},
          nullptr);
      ASSERT_TRUE(status.ok()) << status.reason;
      a.download();
      b.download();
      for (int64_t i = 0; i < c.t; ++i)
        for (int64_t j = 0; j < c.f; ++j) {
          const double x = a.made(i, j), up = dy.made(i, j) * b.made(i, j);
          const Normal n = normal(x, form);
          const double da = up * (n.cdf + x * n.derivative), db = dy.made(i, j) * x * n.cdf;
          const double error = 1 + x * x * x * x;
          const double scale = std::fabs(up) * (n.cdf + std::fabs(x) * n.derivative) * error;
          ASSERT_NEAR(a.got(i, j), da, budget<T>(da, scale, 1, 40)) << i << ", " << j;
          ASSERT_NEAR(b.got(i, j), db, budget<T>(db, std::fabs(db) * error, 1, 40));
        }
    }
}

// Where a^3, a^2 or the gate itself is beyond float's range, the slope is 0 or 1 all the same.
TEST(GegluRange, SlopesOfLargeGates) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kGates[] = {31, 1e5f, 1e13f, 1e20f, 3e38f, kInfinity};
  for (const Approximate form : kForms)
    for (const float gate : kGates) {
      TestTensor<float> a(1, 2), b(1, 2), dy(1, 2);
      for (int64_t j = 0; j < 2; ++j) {
        a.set(0, j, j == 0 ? gate : -gate);
        b.set(0, j, 2);
        dy.set(0, j, 1);
      }
      const Status status = backward(
          Backward<F32>{
              {}, dy.const_view(), a.const_view(), b.const_view(), a.view(), b.view(), form},
          nullptr);
      ASSERT_TRUE(status.ok()) << status.reason;
      a.download();
      b.download();
      EXPECT_EQ(a.got(0, 0), 2) << gate;
      EXPECT_EQ(a.got(0, 1), 0) << -gate;
      EXPECT_EQ(b.got(0, 0), gate);
    }
}

// A NaN clamped on the way would have the slope of a large gate, which is a number.
TEST(GegluRange, GradientOfNanIsNan) {
  for (const Approximate form : kForms) {
    TestTensor<float> a(1, 8), b(1, 8), dy(1, 8);
    a.set(0, 3, std::numeric_limits<double>::quiet_NaN());
    Backward<F32> args{{}, dy.const_view(), a.const_view(), b.const_view(), a.view(), b.view()};
    args.approximate = form;
    const Status status = backward(args, nullptr);
    ASSERT_TRUE(status.ok()) << status.reason;
    a.download();
    b.download();
    for (int64_t j = 0; j < 8; ++j) {
      EXPECT_EQ(std::isnan(a.got(0, j)), j == 3) << j;
      EXPECT_EQ(std::isnan(b.got(0, j)), j == 3) << j;
    }
  }
}

}  // namespace
}  // namespace tigon::geglu
