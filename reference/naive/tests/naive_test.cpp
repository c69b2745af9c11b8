// SPDX-License-Identifier: Apache-2.0
// The baselines beside what their cases compare: gradients over their own inputs, rows that do
// not count, no rows, and memory. On whichever device the build is for.
#include <array>
#include <cmath>
#include <limits>

#include "reference/naive/cross_entropy.h"
#include "reference/naive/linear_cross_entropy.h"
#include "reference/naive/rms_norm.h"
#include "reference/naive/swiglu.h"
#include "reference/naive/tests/device_data.h"

namespace tigon::naive {
namespace {

template <class P>
struct Naive : testing::Test {};
using Policies = testing::Types<F32, BF16, F16>;
struct PolicyName {
  template <class P>
  static std::string GetName(int) {
    return name_of(dtype_of<typename P::Elem>);
  }
};
TYPED_TEST_SUITE(Naive, Policies, PolicyName);

TYPED_TEST(Naive, RmsNormBackwardOverDy) {
  using Elem = typename TypeParam::Elem;
  const int64_t t = 6, h = 32;
  const Data<Elem> x(normal(t * h, 1)), dy(normal(t * h, 3)), dx(static_cast<size_t>(t * h));
  const Data<float> rstd(normal(t, 4, 0.1));
  rms_norm::Backward<TypeParam> b;
  b.x = view<const Elem>(x.device(), t, h);
  b.dy = view<const Elem>(dy.device(), t, h);
  b.rstd = view<const float>(rstd.device(), t);
  b.dx = view(dx.device(), t, h);
  expect_ok(naive::backward(b, nullptr));
  b.dx = view(dy.device(), t, h);
  expect_ok(naive::backward(b, nullptr));
  EXPECT_EQ(dy.now(), dx.now());
}

TYPED_TEST(Naive, SwigluBackwardOverItsInputs) {
  using Elem = typename TypeParam::Elem;
  const int64_t t = 6, f = 32;
  const Data<Elem> a(normal(t * f, 1)), b(normal(t * f, 2)), dy(normal(t * f, 3));
  const Data<Elem> da(static_cast<size_t>(t * f)), db(static_cast<size_t>(t * f));
  swiglu::Backward<TypeParam> g;
  g.dy = view<const Elem>(dy.device(), t, f);
  g.a = view<const Elem>(a.device(), t, f);
  g.b = view<const Elem>(b.device(), t, f);
  g.da = view(da.device(), t, f);
  g.db = view(db.device(), t, f);
  expect_ok(naive::backward(g, nullptr));
  g.da = view(a.device(), t, f);
  g.db = view(b.device(), t, f);
  expect_ok(naive::backward(g, nullptr));
  EXPECT_EQ(a.now(), da.now());
  EXPECT_EQ(b.now(), db.now());
}

TYPED_TEST(Naive, CrossEntropyDoesNotReadIgnoredRows) {
  using Elem = typename TypeParam::Elem;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto run = [](const Values& ignored) {
    Values logits = ignored;
    logits.insert(logits.end(), {1, 2, 3});
    const Data<Elem> x(logits);
    const DeviceTargets target({-100, 1});
    const Data<float> loss(size_t{1}), lse(size_t{2});
    cross_entropy::ForwardBackward<TypeParam> fb;
    fb.logits = view(x.device(), 2, 3);
    fb.target = target.v;
    fb.loss = view(loss.device(), 1);
    fb.lse = view(lse.device(), 2);
    expect_ok(naive::forward_backward(fb, nullptr));
    return std::array{loss.now(), lse.now(), x.now()};
  };
  EXPECT_EQ(run({std::nan(""), 1, kInfinity}), run({0, 0, 0}));
}

TYPED_TEST(Naive, NoTokens) {
  using Elem = typename TypeParam::Elem;
  const Data<Elem> elems(size_t{8}), dw(size_t{8});
  const Data<float> floats(size_t{8}), loss(size_t{1});
  const DeviceTargets target({});
  rms_norm::Backward<TypeParam> b;
  b.dy = b.x = view<const Elem>(elems.device(), 0, 8);
  b.rstd = view<const float>(floats.device(), 0);
  b.dx = view(elems.device(), 0, 8);
  b.dw = view(floats.device(), 8);
  expect_ok(naive::backward(b, nullptr));
  EXPECT_EQ(floats.now(), Values(8, 0.0));

  swiglu::Forward<TypeParam> s;
  s.a = s.b = b.x;
  s.y = b.dx;
  expect_ok(naive::forward(s, nullptr));

  linear_cross_entropy::ForwardBackward<TypeParam> fb;
  fb.x = view<const Elem>(elems.device(), 0, 4);
  fb.w = view<const Elem>(elems.device(), 2, 4);
  fb.target = target.v;
  fb.loss = view(loss.device(), 1);
  fb.lse = view(floats.device(), 0);
  fb.dw = view(dw.device(), 2, 4);
  expect_ok(naive::forward_backward(fb, nullptr));
  EXPECT_EQ(loss.now(), Values{0.0});
  EXPECT_EQ(dw.now(), Values(8, 0.0));
}

TEST(Naive, MemoryIsFreedAndSeen) {
  const size_t before = device_memory_stats().current;
  {
    const Data<float> a(size_t{4096}), b(size_t{4096}), y(size_t{4096});
    const size_t tensors = device_memory_stats().current;
    device_memory_reset_high_water();
    swiglu::Forward<F32> f;
    f.a = view<const float>(a.device(), 4, 1024);
    f.b = view<const float>(b.device(), 4, 1024);
    f.y = view(y.device(), 4, 1024);
    expect_ok(naive::forward(f, nullptr));
    EXPECT_EQ(device_memory_stats().high_water - tensors, 4096 * sizeof(float)) << "silu(a)";
    EXPECT_EQ(device_memory_stats().current, tensors);
  }
  EXPECT_EQ(device_memory_stats().current, before);
}

}  // namespace
}  // namespace tigon::naive
