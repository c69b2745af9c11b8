// SPDX-License-Identifier: Apache-2.0
// softmax against a plain loop in double: layouts that the contract's cases do not reach, of one
// tensor aligned otherwise than the others.
#include "kernels/softmax/softmax.h"

#include "kernels/tests/test_tensor.h"

namespace tigon::softmax {
namespace {

template <class P>
class Softmax : public testing::Test {};
using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(Softmax, Policies);

struct Case {
  int64_t t, v;
  int64_t pad = 0, shift = 0;  // of the output
};
// Single elements: a warp, a block, a cluster per row, and more than a cluster keeps; several rows
// per block. Then pieces with heads and tails, and rows of which only some are aligned alike. Then
// wide rows, of one block and of clusters, more of them than there are clusters.
constexpr Case kCases[] = {{13, 200, 0, 1},  {5, 1000, 0, 1}, {5, 3000, 0, 3}, {3, 9001, 0, 1},
                           {2, 40001, 0, 1}, {9, 301},        {5, 4099},       {3, 20001},
                           {4, 300, 3},      {3, 5001, 7},    {9, 30001},      {7, 100003},
                           {7, 200001}};

TYPED_TEST(Softmax, Forward) {
  using T = typename TypeParam::Elem;
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message()
                 << "T=" << c.t << " V=" << c.v << " pad=" << c.pad << " shift=" << c.shift);
    const TestTensor<T> x(c.t, c.v);
    TestTensor<T> y(c.t, c.v, {c.pad, c.shift});
    const Status status = forward(Forward<TypeParam>{x.const_view(), y.view()}, nullptr);
    ASSERT_TRUE(status.ok()) << status.reason;
    y.download();
    ASSERT_TRUE(y.gaps_unchanged());
    for (int64_t i = 0; i < c.t; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < c.v; ++j) sum += std::exp(x.made(i, j));
      for (int64_t j = 0; j < c.v; ++j) {
        const double expected = std::exp(x.made(i, j)) / sum;
        ASSERT_NEAR(y.got(i, j), expected,
                    budget<T>(expected, expected, static_cast<double>(c.v), 24))
            << i << ", " << j;
      }
    }
  }
}

TYPED_TEST(Softmax, Backward) {
  using T = typename TypeParam::Elem;
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message()
                 << "T=" << c.t << " V=" << c.v << " pad=" << c.pad << " shift=" << c.shift);
    const TestTensor<T> dy(c.t, c.v), y(c.t, c.v);
    TestTensor<T> dx(c.t, c.v, {c.pad, c.shift});
    const Status status =
        backward(Backward<TypeParam>{dy.const_view(), y.const_view(), dx.view()}, nullptr);
    ASSERT_TRUE(status.ok()) << status.reason;
    dx.download();
    ASSERT_TRUE(dx.gaps_unchanged());
    for (int64_t i = 0; i < c.t; ++i) {
      double sum = 0, size = 0;
      for (int64_t j = 0; j < c.v; ++j) {
        sum += y.made(i, j) * dy.made(i, j);
        size += std::fabs(y.made(i, j) * dy.made(i, j));
      }
      for (int64_t j = 0; j < c.v; ++j) {
        const double expected = y.made(i, j) * (dy.made(i, j) - sum);
        const double scale = std::fabs(y.made(i, j)) * (std::fabs(dy.made(i, j)) + size);
        ASSERT_NEAR(dx.got(i, j), expected, budget<T>(expected, scale, static_cast<double>(c.v)))
            << i << ", " << j;
      }
    }
  }
}

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
