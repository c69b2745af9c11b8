// rope against a plain loop in double.
#include "kernels/rope/rope.h"

#include "kernels/tests/test_tensor.h"

namespace tigon::rope {
namespace {

template <class P>
class Rope : public testing::Test {};
using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(Rope, Policies);

struct Case {
  int64_t t, q, k, d;
  int64_t pad = 0, shift = 0;
};
constexpr Case kCases[] = {{1, 1, 1, 2},        {3, 3, 1, 6},    {7, 8, 2, 16},    {5, 32, 8, 128},
                           {3, 9, 2, 80},       {2, 2, 0, 64},   {3, 5, 3, 16, 8}, {3, 5, 3, 16, 3},
                           {2, 2, 1, 16, 0, 1}, {2, 1, 1, 5000}, {2, 300, 1, 16}};

// Turns what was uploaded, in double, and compares what the kernel made of it.
template <class T>
void expect_turned(const TestTensor<T>& x, int64_t heads, const Case& c,
                   const TestTensor<float>& cos, const TestTensor<float>& sin, double direction) {
  ASSERT_TRUE(x.gaps_unchanged());
  const int64_t half = c.d / 2;
  for (int64_t t = 0; t < c.t; ++t)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t j = 0; j < half; ++j) {
        const int64_t low = h * c.d + j, high = low + half;
        const double a = x.made(t, low), b = x.made(t, high);
        const double co = cos.made(t, j), si = direction * sin.made(t, j);
        const double x1 = a * co - b * si, x2 = b * co + a * si;
        const double s1 = std::fabs(a * co) + std::fabs(b * si);
        const double s2 = std::fabs(b * co) + std::fabs(a * si);
        ASSERT_NEAR(x.got(t, low), x1, budget<T>(x1, s1)) << t << ", " << h << ", " << j;
        ASSERT_NEAR(x.got(t, high), x2, budget<T>(x2, s2)) << t << ", " << h << ", " << j;
      }
}

template <class Args, class Pass>
void expect_pass(double direction, const Pass& pass) {
  using T = typename Args::Elem;
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << "T=" << c.t << " Q=" << c.q << " K=" << c.k << " D=" << c.d
                                    << " pad=" << c.pad << " shift=" << c.shift);
    const typename TestTensor<T>::Layout layout{c.pad, c.shift};
    TestTensor<T> q(c.t, c.q * c.d, layout), k(c.t, c.k * c.d, layout);
    const TestTensor<float> cos(c.t, c.d / 2), sin(c.t, c.d / 2);
    const Status status = pass(
        Args{q.heads_view(c.q, c.d), k.heads_view(c.k, c.d), cos.const_view(), sin.const_view()});
    ASSERT_TRUE(status.ok()) << status.reason;
    q.download();
    k.download();
    expect_turned(q, c.q, c, cos, sin, direction);
    expect_turned(k, c.k, c, cos, sin, direction);
  }
}

TYPED_TEST(Rope, Forward) {
  expect_pass<Forward<TypeParam>>(1, [](const auto& args) { return forward(args, nullptr); });
}

TYPED_TEST(Rope, Backward) {
  expect_pass<Backward<TypeParam>>(-1, [](const auto& args) { return backward(args, nullptr); });
}

TEST(RopeArguments, AreChecked) {
  const TestTensor<float> x(2, 12), angles(2, 3), narrow(2, 2);
  const Forward<F32> good{x.heads_view(2, 6), x.heads_view(2, 6), angles.const_view(),
                          angles.const_view()};
  Forward<F32> args = good;
  args.q = args.k = x.heads_view(4, 3);
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "odd head size";
  args = good;
  args.sin = narrow.const_view();
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "one angle too few";
  args = good;
  args.cos.data = nullptr;
  EXPECT_EQ(forward(args, nullptr).code, Status::kInvalidArgument) << "no cos";
  const View<float, 3> none = view(static_cast<float*>(nullptr), 0, 2, 6);
  const View<const float, 2> no_angles = view(static_cast<const float*>(nullptr), 0, 3);
  EXPECT_TRUE(forward(Forward<F32>{none, none, no_angles, no_angles}, nullptr).ok());
}

}  // namespace
}  // namespace tigon::rope
