// SPDX-License-Identifier: Apache-2.0
// add_rms_norm: what its launchers refuse, and no rows.
#include "kernels/add_rms_norm/add_rms_norm.h"

#include "kernels/tests/test_tensor.h"

namespace tigon::add_rms_norm {
namespace {

TEST(AddRmsNormArguments, AreChecked) {
  const TestTensor<float> x(2, 8), narrow(2, 4), row(1, 8), rstd(1, 2);
  Forward<F32> args{x.const_view(), narrow.const_view(), {}, x.view(), x.view(), rstd.row()};
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "residual too narrow";
  args.residual = {};
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "no residual";
  args.residual = x.const_view();
  args.h.data = nullptr;
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "no h";
  args.h = narrow.view();
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "h too narrow";

  Backward<F32> back{x.const_view(),
                     narrow.const_view(),
                     x.const_view(),
                     row.const_row(),
                     rstd.const_row(),
                     x.view(),
                     {},
                     {}};
  EXPECT_EQ(backward(back, nullptr).code, Status::kInvalidArgument) << "dh too narrow";
  back.dh = x.const_view();
  back.dw = row.row();
  EXPECT_EQ(backward(back, nullptr).code, Status::kInvalidArgument) << "no scratch";
  back.w = {};
  EXPECT_EQ(backward(back, nullptr).code, Status::kInvalidArgument) << "dw without w";
  back.dw = {};
  EXPECT_TRUE(backward(back, nullptr).ok());
}

TEST(AddRmsNormArguments, NoRowsGiveZeroGradient) {
  const TestTensor<float> w(1, 8);
  TestTensor<float> dw(1, 8);
  const View<const float, 2> none = view(static_cast<const float*>(nullptr), 0, 8);
  Backward<F32> args{none, none, none, w.const_row(), {}, {}, dw.row(), {}};
  args.dx = view(static_cast<float*>(nullptr), 0, 8);
  args.rstd = view(static_cast<const float*>(nullptr), 0);
  ASSERT_TRUE(backward(args, nullptr).ok());
  dw.download();
  for (int64_t j = 0; j < 8; ++j) EXPECT_EQ(dw.got(0, j), 0.0);
}

}  // namespace
}  // namespace tigon::add_rms_norm
