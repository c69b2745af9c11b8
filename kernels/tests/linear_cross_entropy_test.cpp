// SPDX-License-Identifier: Apache-2.0
// linear_cross_entropy against plain loops in double: options, sizes, gradients, refusals.
#include "kernels/tests/linear_cross_entropy_problem.h"

namespace tigon::linear_cross_entropy {
namespace {

TYPED_TEST_SUITE(LinearCrossEntropy, Policies);

TYPED_TEST(LinearCrossEntropy, OptionsInOneChunkAndInSeveral) {
  LossOptions plain, all{.label_smoothing = 0.1f, .z_loss = 1e-2f, .softcap = 5.0f};
  for (LossOptions o : {plain, all}) {
    for (const Reduction r : {Reduction::kMean, Reduction::kSum, Reduction::kNone}) {
      o.reduction = r;
      for (const int64_t chunk : {100, 5, 1}) {
        this->make({.options = o, .rows_per_chunk = chunk});
        this->expect_right();
      }
    }
  }
}

// V not a multiple of the padding, H not a multiple of 16 bytes, whole tiles and a rest.
TYPED_TEST(LinearCrossEntropy, Sizes) {
  this->make({.rows = 300, .hidden = 9, .columns = 33, .rows_per_chunk = 130});
  this->expect_right();
  this->make({.rows = 5, .hidden = 3, .columns = 1, .rows_per_chunk = 2, .upstream = false});
  this->expect_right();
  this->make({.rows = 1, .hidden = 1, .columns = 8});
  this->expect_right();
}

TYPED_TEST(LinearCrossEntropy, GradientsLeftOut) {
  for (const int64_t chunk : {100, 5}) {
    for (const bool dx : {true, false}) {
      this->make({.rows_per_chunk = chunk, .dx = dx, .dw = dx ? Dw::kNone : Dw::kElem});
      this->expect_right();
    }
  }
  this->make({.dx = false, .dw = Dw::kNone});
  this->expect_right();
}

TYPED_TEST(LinearCrossEntropy, GradientInFp32) {
  for (const Dw dw : {Dw::kFp32, Dw::kAccum}) {
    for (const int64_t chunk : {100, 5}) {
      this->make({.rows_per_chunk = chunk, .dw = dw});
      this->expect_right();
    }
    this->make({.rows = 0, .dw = dw});
    this->expect_right();
  }
}

TYPED_TEST(LinearCrossEntropy, Bias) {
  for (const int64_t chunk : {100, 5}) {
    this->make({.rows_per_chunk = chunk, .bias = true});
    this->expect_right();
  }
  // Several groups of rows in the sums of dbias, and a last piece of a row.
  this->make({.rows = 200, .hidden = 3, .columns = 35, .rows_per_chunk = 200, .bias = true});
  this->expect_right();
  this->make({.rows = 0, .bias = true});
  this->expect_right();
}

TYPED_TEST(LinearCrossEntropy, MeanByTheCallersNormaliser) {
  for (const float n : {3.5f, 0.0f}) {
    this->make({.rows_per_chunk = 5, .normaliser = n});
    this->expect_right();
  }
}

TYPED_TEST(LinearCrossEntropy, NoRows) {
  for (const Reduction r : {Reduction::kMean, Reduction::kNone}) {
    this->make({.options = {.reduction = r}, .rows = 0});
    this->expect_right();  // dw is 0
  }
}

TYPED_TEST(LinearCrossEntropy, AllRowsIgnored) {
  this->make({.rows_per_chunk = 4});
  this->targets_.assign(this->targets_.size(), -100);
  this->expect_right();
  EXPECT_EQ(this->run_forward().loss[0], 0.0f);
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
