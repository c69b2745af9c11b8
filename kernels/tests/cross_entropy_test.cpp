// SPDX-License-Identifier: Apache-2.0
// cross_entropy: what the launchers refuse.
#include "kernels/cross_entropy/cross_entropy.h"

#include <cmath>

#include "kernels/tests/device_array.h"

namespace tigon::cross_entropy {
namespace {

using namespace testing_support;

template <class P>
class CrossEntropy : public testing::Test {};
using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(CrossEntropy, Policies);

TYPED_TEST(CrossEntropy, RefusesBadArguments) {
  using Elem = typename TypeParam::Elem;
  const DeviceArray<Elem> logits(random_values<Elem>(2 * 8, 3.0f, 1));
  const DeviceArray<int64_t> target(random_targets(2, 8, -100));
  const DeviceArray<float> loss(std::vector<float>(2)), lse(std::vector<float>(2));
  Forward<TypeParam> good;
  good.logits = view<const Elem>(logits.data(), 2, 8);
  good.target = view<const int64_t>(target.data(), 2);
  good.loss = view(loss.data(), 1);
  good.lse = view(lse.data(), 2);
  const DeviceBuffer scratch(workspace(good));
  good.scratch = {scratch.data(), scratch.bytes()};
  ASSERT_TRUE(forward(good, nullptr).ok());
  const auto refused = [&](auto change) {
    auto bad = good;
    change(bad);
    return forward(bad, nullptr).code == Status::kInvalidArgument;
  };
  using A = Forward<TypeParam>;
  EXPECT_TRUE(refused([](A& a) { a.scratch.bytes -= 1; }));
  EXPECT_TRUE(refused([](A& a) { a.scratch.data = nullptr; }));
  EXPECT_TRUE(refused([](A& a) { a.target.shape[0] = 1; }));
  EXPECT_TRUE(refused([](A& a) { a.logits.stride[0] = 7; }));
  EXPECT_TRUE(refused([](A& a) { a.logits.stride[1] = 2; }));
  EXPECT_TRUE(refused([](A& a) { a.loss.shape[0] = 2; }));
  EXPECT_TRUE(refused([](A& a) { a.lse.data = nullptr; }));
  const float weights[7] = {};
  EXPECT_TRUE(refused([&](A& a) { a.class_weight = view(&weights[0], 7); }));
  EXPECT_TRUE(refused([&](A& a) { a.entropy = view(loss.data(), 2); }));
  EXPECT_TRUE(refused([](A& a) { a.label_smoothing = 1.5f; }));
  EXPECT_TRUE(refused([](A& a) { a.label_smoothing = std::nanf(""); }));
}

}  // namespace
}  // namespace tigon::cross_entropy
