// SPDX-License-Identifier: Apache-2.0
// linear_cross_entropy: a loss has the same bits in both passes, and what the launchers refuse.
#include "kernels/tests/linear_cross_entropy_call.h"

namespace tigon::linear_cross_entropy {
namespace {

TYPED_TEST_SUITE(LinearCrossEntropy, Policies);

// In one chunk and in several, of rows and of columns: those are cut alike where no dw holds
// logits.
TYPED_TEST(LinearCrossEntropy, LossHasTheSameBitsInBothPasses) {
  for (const Reduction reduction : {Reduction::kMean, Reduction::kNone})
    for (const int64_t rows : {100, 5, 1})
      for (const int64_t columns : {0, 16}) {
        this->make({.options = {.label_smoothing = 0.1f, .reduction = reduction},
                    .rows_per_chunk = rows,
                    .columns_per_chunk = columns,
                    .dw = Dw::kAccum,
                    .bias = true});
        const auto both = this->run_forward_backward(), alone = this->run_forward();
        EXPECT_TRUE(same_bits(both.loss, alone.loss)) << rows << " rows, " << columns << " columns";
        EXPECT_TRUE(same_bits(both.lse, alone.lse)) << rows << " rows, " << columns << " columns";
      }
}

TYPED_TEST(LinearCrossEntropy, RefusesBadArguments) {
  using Elem = typename TypeParam::Elem;
  this->make({});
  const DeviceArray<Elem> x(this->x_), w(this->w_), bias(this->bias_), dx(this->x_);
  const DeviceArray<int64_t> target(this->targets_);
  const DeviceArray<float> loss(std::vector<float>(13)), lse(std::vector<float>(13));
  ForwardBackward<TypeParam> good;
  this->bind(good, x, w, bias, target, loss, lse);
  good.dx = view(dx.data(), 13, 24);
  const DeviceArray<float> sum(std::vector<float>(50 * 24));
  const DeviceBuffer scratch(workspace(good));
  good.scratch = {scratch.data(), scratch.bytes()};
  ASSERT_TRUE(forward_backward(good, nullptr).ok());
  ASSERT_TRUE(tune(good).ok());
  const auto refused = [&](auto change) {
    auto bad = good;
    change(bad);
    return forward_backward(bad, nullptr).code == Status::kInvalidArgument;
  };
  using A = ForwardBackward<TypeParam>;
  EXPECT_TRUE(refused([](A& a) { a.scratch.bytes -= 1; }));
  EXPECT_TRUE(refused([](A& a) { a.w.shape[1] = 23; }));
  EXPECT_TRUE(refused([](A& a) { a.dx.shape[0] = 12; }));
  EXPECT_TRUE(refused([](A& a) { a.x.stride[0] = 23; }));
  EXPECT_TRUE(refused([](A& a) { a.target.data = nullptr; }));
  EXPECT_TRUE(refused([](A& a) { a.loss.shape[0] = 13; }));
  EXPECT_TRUE(refused([](A& a) { a.label_smoothing = -0.1f; }));
  EXPECT_TRUE(refused([&](A& a) { a.dw_accum = view(sum.data(), 50, 23); }));
  EXPECT_TRUE(refused([&](A& a) { a.bias = view(static_cast<const Elem*>(w.data()), 49); }));
  EXPECT_TRUE(refused([&](A& a) { a.dbias = view(sum.data(), 51); }));
  EXPECT_TRUE(refused([&](A& a) { a.dw_accum = a.dw_fp32 = view(sum.data(), 50, 24); }));
}

}  // namespace
}  // namespace tigon::linear_cross_entropy
