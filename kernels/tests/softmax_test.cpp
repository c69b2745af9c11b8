// SPDX-License-Identifier: Apache-2.0
// softmax: what its launchers refuse.
#include "kernels/softmax/softmax.h"

#include "kernels/tests/test_tensor.h"

namespace tigon::softmax {
namespace {

TEST(SoftmaxArguments, AreChecked) {
  const TestTensor<float> x(2, 8), narrow(2, 4);
  Forward<F32> args{x.const_view(), narrow.view()};
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "y too narrow";
  args.y.data = nullptr;
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "no y";
  args.x = view(static_cast<const float*>(nullptr), 2, 0);
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "no columns";
  args.x = view(static_cast<const float*>(nullptr), 0, 8);
  args.y = view(static_cast<float*>(nullptr), 0, 8);
  EXPECT_TRUE(forward(args, nullptr).ok()) << "no rows";
  args.x.shape[0] = args.y.shape[0] = int64_t{1} << 31;
  EXPECT_EQ(forward(args, nullptr).code, Status::kUnsupported) << "too many rows";

  Backward<F32> back{x.const_view(), x.const_view(), narrow.view()};
  EXPECT_EQ(backward(back, nullptr).code, Status::kInvalidArgument) << "dx too narrow";
}

}  // namespace
}  // namespace tigon::softmax
