// SPDX-License-Identifier: Apache-2.0
// geglu at the end of float's range and beyond.
#include "kernels/geglu/geglu.h"

#include <limits>

#include "kernels/tests/test_tensor.h"

namespace tigon::geglu {
namespace {

constexpr Approximate kForms[] = {Approximate::kTanh, Approximate::kNone};

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
