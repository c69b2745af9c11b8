// SPDX-License-Identifier: Apache-2.0
// swiglu against a plain loop in double.
#include "kernels/swiglu/swiglu.h"

#include "kernels/tests/test_tensor.h"

namespace tigon::swiglu {
namespace {

template <class P>
class Swiglu : public testing::Test {};
using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(Swiglu, Policies);

struct Case {
  int64_t t, f;
  int64_t pad = 0, shift = 0;
};
constexpr Case kCases[] = {{1, 1},     {3, 7},     {2, 8},       {5, 33},      {3, 4099},
                           {2, 40, 8}, {3, 41, 7}, {2, 9, 1, 1}, {2, 16, 0, 3}};

double sigmoid(double a) { return 1 / (1 + std::exp(-a)); }

template <class P>
void expect_forward(const Case& c) {
  using T = typename P::Elem;
  SCOPED_TRACE(testing::Message() << "T=" << c.t << " F=" << c.f << " pad=" << c.pad
                                  << " shift=" << c.shift);
  const typename TestTensor<T>::Layout layout{c.pad, c.shift};
  TestTensor<T> a(c.t, c.f, layout), b(c.t, c.f, layout), y(c.t, c.f, layout);
  const Status status = forward(Forward<P>{{}, a.const_view(), b.const_view(), y.view()}, nullptr);
  ASSERT_TRUE(status.ok()) << status.reason;
  y.download();
  ASSERT_TRUE(y.gaps_unchanged());
  for (int64_t i = 0; i < c.t; ++i)
    for (int64_t j = 0; j < c.f; ++j) {
      const double x = a.made(i, j), expected = x * sigmoid(x) * b.made(i, j);
      const double scale = std::fabs(expected) * (1 + std::fabs(x));
      ASSERT_NEAR(y.got(i, j), expected, budget<T>(expected, scale, 1, 40)) << i << ", " << j;
    }
}

TYPED_TEST(Swiglu, Forward) {
  for (const Case& c : kCases) expect_forward<TypeParam>(c);
}

TEST(SwigluRows, MoreThanTheGridHas) { expect_forward<BF16>({66000, 1, 1}); }

TYPED_TEST(Swiglu, BackwardInPlace) {
  using T = typename TypeParam::Elem;
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << "T=" << c.t << " F=" << c.f << " pad=" << c.pad);
    const typename TestTensor<T>::Layout layout{c.pad, c.shift};
    TestTensor<T> a(c.t, c.f, layout), b(c.t, c.f, layout), dy(c.t, c.f, layout);
    const Status status = backward(
        Backward<TypeParam>{
            {}, dy.const_view(), a.const_view(), b.const_view(), a.view(), b.view()},
        nullptr);
    ASSERT_TRUE(status.ok()) << status.reason;
    a.download();
    b.download();
    ASSERT_TRUE(a.gaps_unchanged() && b.gaps_unchanged());
    for (int64_t i = 0; i < c.t; ++i)
      for (int64_t j = 0; j < c.f; ++j) {
        const double x = a.made(i, j);
        const double gate = b.made(i, j), s = sigmoid(x);
        const double da = dy.made(i, j) * gate * (s + x * s * (1 - s)), db = dy.made(i, j) * x * s;
        const double scale =
            std::fabs(dy.made(i, j) * gate) * s * (1 + std::fabs(x)) * (1 + std::fabs(x) * (1 - s));
        ASSERT_NEAR(a.got(i, j), da, budget<T>(da, scale, 1, 40)) << i << ", " << j;
        ASSERT_NEAR(b.got(i, j), db, budget<T>(db, std::fabs(db) * (1 + std::fabs(x)), 1, 40));
      }
  }
}

// Gate and up are the halves of each row, and so are their gradients in the same memory.
TYPED_TEST(Swiglu, PackedInPlace) {
  using T = typename TypeParam::Elem;
  for (const GateLayout order : {GateLayout::kGateFirst, GateLayout::kUpFirst}) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(testing::Message() << "T=" << c.t << " F=" << c.f << " pad=" << c.pad);
      TestTensor<T> packed(c.t, 2 * c.f, {c.pad, c.shift}), dy(c.t, c.f);
      const GatedOptions options{order, 0.5f, 3.0f};
      Backward<TypeParam> args{options, dy.const_view(), packed.const_view(),
                               {},      packed.view(),   {}};
      const Status status = backward(args, nullptr);
      ASSERT_TRUE(status.ok()) << status.reason;
      packed.download();
      ASSERT_TRUE(packed.gaps_unchanged());
      const int64_t gate = order == GateLayout::kGateFirst ? 0 : c.f, up = c.f - gate;
      for (int64_t i = 0; i < c.t; ++i)
        for (int64_t j = 0; j < c.f; ++j) {
          const double x = 0.5 * packed.made(i, gate + j), s = sigmoid(x), g = 3 * dy.made(i, j);
          const double da = 0.5 * g * packed.made(i, up + j) * (s + x * s * (1 - s));
          const double scale = std::fabs(g * packed.made(i, up + j)) * (1 + std::fabs(x));
          ASSERT_NEAR(packed.got(i, gate + j), da, budget<T>(da, scale, 1, 40)) << i << ", " << j;
          ASSERT_NEAR(packed.got(i, up + j), g * x * s, budget<T>(g * x * s, std::fabs(g), 1, 40));
        }
    }
  }
}

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
