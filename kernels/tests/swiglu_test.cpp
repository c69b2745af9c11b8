// SPDX-License-Identifier: Apache-2.0
// swiglu at the end of float's range, and what its launchers refuse.
#include "kernels/swiglu/swiglu.h"

#include "kernels/tests/test_tensor.h"

namespace tigon::swiglu {
namespace {

// dy b is beyond float's range, and the slope of silu is 0.
TEST(SwigluRange, NoOverflowBeforeAFlatSlope) {
  TestTensor<float> a(1, 8), b(1, 8), dy(1, 8);
  for (int64_t j = 0; j < 8; ++j) {
    a.set(0, j, -3e38);
    b.set(0, j, 3e38);
    dy.set(0, j, 3);
  }
  const Status status = backward(
      Backward<F32>{{}, dy.const_view(), a.const_view(), b.const_view(), a.view(), b.view()},
      nullptr);
  ASSERT_TRUE(status.ok()) << status.reason;
  a.download();
  for (int64_t j = 0; j < 8; ++j) EXPECT_EQ(a.got(0, j), 0);
}

TEST(SwigluArguments, AreChecked) {
  const TestTensor<float> a(2, 8), narrow(2, 4);
  Forward<F32> args{{}, a.const_view(), a.const_view(), a.view()};
  args.b = narrow.const_view();
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument);
  args.b = a.const_view();
  args.y.data = nullptr;
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument);
  args.y = narrow.view();
  args.layout = GateLayout::kGateFirst;
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "b is in a already";
  args.b = {};
  EXPECT_TRUE(forward(args, nullptr).ok());
  args.y = a.view();
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "a must be twice as wide";
  const View<float, 2> empty = view(static_cast<float*>(nullptr), 0, 8);
  const View<const float, 2> none = view(static_cast<const float*>(nullptr), 0, 8);
  EXPECT_TRUE(forward(Forward<F32>{{}, none, none, empty}, nullptr).ok());
}

}  // namespace
}  // namespace tigon::swiglu
