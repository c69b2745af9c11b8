// SPDX-License-Identifier: Apache-2.0
// Norms, rotations and gates of the baselines against plain loops in double, on whichever device
// the build is for. The bounds are loose: a baseline is as exact as an eager framework.
#include "reference/naive/linear_cross_entropy.h"
#include "reference/naive/rms_norm.h"
#include "reference/naive/rope.h"
#include "reference/naive/swiglu.h"
#include "reference/naive/tests/naive_problem.h"

namespace tigon::naive {
namespace {

template <class P>
struct Naive : OfPolicy<P> {};
TYPED_TEST_SUITE(Naive, Policies, PolicyName);

const Rows kRowCases[] = {{7, 64, 64}, {5, 123, 130}, {1, 1, 1}};

TYPED_TEST(Naive, RmsNorm) {
  using Elem = typename TypeParam::Elem;
  for (const Rows& r : kRowCases)
    for (bool weighted : {true, false})
      for (float offset : {0.0f, 1.0f})
        for (auto casting : {tigon::rms_norm::Casting::kLlama, tigon::rms_norm::Casting::kGemma,
                             tigon::rms_norm::Casting::kNone}) {
          const int64_t n = r.t * r.pitch;
          const Data<Elem> x(normal(n, 1)), w(normal(r.h, 2)), dy(normal(n, 3)), y(n), dx(n);
          const Data<float> rstd(static_cast<size_t>(r.t)), dw(static_cast<size_t>(r.h));
          rms_norm::Forward<TypeParam> f;
          f.x = rows<const Elem>(x.device(), r);
          if (weighted) f.w = view<const Elem>(w.device(), r.h);
          f.y = rows(y.device(), r);
          f.rstd = view(rstd.device(), r.t);
          f.offset = offset;
          f.casting = casting;
          expect_ok(naive::forward(f, nullptr));
          rms_norm::Backward<TypeParam> b;
          b.dy = rows<const Elem>(dy.device(), r);
          b.x = f.x;
          b.w = f.w;
          b.rstd = view<const float>(rstd.device(), r.t);
          b.dx = rows(dx.device(), r);
          if (weighted) b.dw = view(dw.device(), r.h);
          b.offset = offset;
          expect_ok(naive::backward(b, nullptr));

          Values y_want(static_cast<size_t>(n), -77), dx_want = y_want, rstd_want;
          Values dw_want(static_cast<size_t>(r.h));
          for (int64_t t = 0; t < r.t; ++t) {
            double squares = 0, dot = 0;
            const auto at = [&](int64_t i) { return t * r.pitch + i; };
            const auto m = [&](int64_t i) { return weighted ? offset + w[i] : 1.0; };
            for (int64_t i = 0; i < r.h; ++i) squares += x[at(i)] * x[at(i)];
            for (int64_t i = 0; i < r.h; ++i) dot += m(i) * dy[at(i)] * x[at(i)];
            const double s = 1 / std::sqrt(squares / static_cast<double>(r.h) + 1e-6);
            rstd_want.push_back(s);
            for (int64_t i = 0; i < r.h; ++i) {
              y_want[at(i)] = x[at(i)] * s * m(i);
              dx_want[at(i)] =
                  s * (m(i) * dy[at(i)] - x[at(i)] * s * s * dot / static_cast<double>(r.h));
              dw_want[i] += dy[at(i)] * x[at(i)] * s;
            }
          }
          SCOPED_TRACE(testing::Message() << "T=" << r.t << " H=" << r.h << " pitch=" << r.pitch
                                          << " weighted=" << weighted << " offset=" << offset
                                          << " casting=" << static_cast<int>(casting));
          expect_close(rstd.now(), rstd_want, 1e-6, "rstd");
          expect_close(y.now(), y_want, TestFixture::kBound, "y");
          // With one element dx is a difference of two nearly equal terms.
          if (r.h > 1) expect_close(dx.now(), dx_want, TestFixture::kBound, "dx");
          if (weighted) expect_close(dw.now(), dw_want, TestFixture::kBound, "dw");
        }
}

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

TYPED_TEST(Naive, Swiglu) {
  using Elem = typename TypeParam::Elem;
  for (const Rows& r : kRowCases) {
    const int64_t n = r.t * r.pitch;
    const Data<Elem> a(normal(n, 1, 2)), b(normal(n, 2)), dy(normal(n, 3)), y(n), da(n), db(n);
    swiglu::Forward<TypeParam> f;
    f.a = rows<const Elem>(a.device(), r);
    f.b = rows<const Elem>(b.device(), r);
    f.y = rows(y.device(), r);
    expect_ok(naive::forward(f, nullptr));
    swiglu::Backward<TypeParam> g;
    g.dy = rows<const Elem>(dy.device(), r);
    g.a = f.a;
    g.b = f.b;
    g.da = rows(da.device(), r);
    g.db = rows(db.device(), r);
    expect_ok(naive::backward(g, nullptr));
    g.da = rows(a.device(), r);
    g.db = rows(b.device(), r);
    expect_ok(naive::backward(g, nullptr));

    Values y_want(static_cast<size_t>(n), -77), da_want = y_want, db_want = y_want;
    Values over_a = a.now(), over_b = b.now();
    for (int64_t t = 0; t < r.t; ++t)
      for (int64_t j = 0; j < r.h; ++j) {
        const int64_t i = t * r.pitch + j;
        const double s = 1 / (1 + std::exp(-a[i])), silu = a[i] * s;
        y_want[i] = silu * b[i];
        da_want[i] = dy[i] * b[i] * (s + silu * (1 - s));
        db_want[i] = dy[i] * silu;
      }
    SCOPED_TRACE(testing::Message() << "T=" << r.t << " F=" << r.h << " pitch=" << r.pitch);
    expect_close(y.now(), y_want, TestFixture::kBound, "y");
    expect_close(da.now(), da_want, TestFixture::kBound, "da");
    expect_close(db.now(), db_want, TestFixture::kBound, "db");
    for (int64_t t = 0; t < r.t; ++t)
      for (int64_t j = r.h; j < r.pitch; ++j) {  // gaps between rows keep their contents
        EXPECT_EQ(over_a[t * r.pitch + j], a[t * r.pitch + j]);
        over_a[t * r.pitch + j] = over_b[t * r.pitch + j] = -77;
      }
    EXPECT_EQ(over_a, da.now()) << "da over a";
    for (int64_t t = 0; t < r.t; ++t)
      for (int64_t j = 0; j < r.h; ++j)
        EXPECT_EQ(over_b[t * r.pitch + j], db.now()[t * r.pitch + j]) << "db over b";
  }
}

// Heads [T, H, D] with gaps, either token-major or head-major.
struct Heads {
  int64_t t, h, d, token_stride, head_stride, size;
};
Heads token_major(int64_t t, int64_t h, int64_t d) {
  return {t, h, d, h * (d + 2) + 6, d + 2, t * (h * (d + 2) + 6)};
}
Heads head_major(int64_t t, int64_t h, int64_t d) { return {t, h, d, d, t * d, t * h * d}; }

template <class T>
View<T, 3> heads(T* data, const Heads& s) {
  View<T, 3> v = view(data, s.t, s.h, s.d);
  v.stride[0] = s.token_stride;
  v.stride[1] = s.head_stride;
  return v;
}

template <class D>
Values turned(const D& x, const Heads& s, const Data<float>& cos, const Data<float>& sin,
              double direction) {
  Values y(static_cast<size_t>(s.size));
  for (int64_t i = 0; i < s.size; ++i) y[i] = x[i];
  for (int64_t t = 0; t < s.t; ++t)
    for (int64_t h = 0; h < s.h; ++h)
      for (int64_t j = 0; j < s.d / 2; ++j) {
        const int64_t i1 = t * s.token_stride + h * s.head_stride + j, i2 = i1 + s.d / 2;
        const double c = cos[t * (s.d / 2) + j], n = direction * sin[t * (s.d / 2) + j];
        y[i1] = x[i1] * c - x[i2] * n;
        y[i2] = x[i2] * c + x[i1] * n;
      }
  return y;
}

TYPED_TEST(Naive, Rope) {
  using Elem = typename TypeParam::Elem;
  for (auto layout : {token_major, head_major})
    for (auto [t, h, d] : {std::array<int64_t, 3>{9, 4, 16}, {3, 1, 2}, {1, 5, 64}})
      for (bool backward : {false, true}) {
        const Heads q = layout(t, h, d), k = layout(t, 1, d);
        const Data<Elem> q_data(normal(q.size, 1)), k_data(normal(k.size, 2));
        Values angles = normal(t * d / 2, 3, 2), c, s;
        for (double a : angles) c.push_back(std::cos(a)), s.push_back(std::sin(a));
        const Data<float> cos(c), sin(s);
        const auto run = [&, t = t, d = d](auto args, auto q_member, auto k_member, auto pass) {
          args.*q_member = heads(q_data.device(), q);
          args.*k_member = heads(k_data.device(), k);
          args.cos = view<const float>(cos.device(), t, d / 2);
          args.sin = view<const float>(sin.device(), t, d / 2);
          expect_ok(pass(args));
        };
        using F = rope::Forward<TypeParam>;
        using B = rope::Backward<TypeParam>;
        if (backward)
          run(B{}, &B::dq, &B::dk, [](const B& b) { return naive::backward(b, nullptr); });
        else
          run(F{}, &F::q, &F::k, [](const F& f) { return naive::forward(f, nullptr); });
        SCOPED_TRACE(testing::Message()
                     << "T=" << t << " heads=" << h << " D=" << d
                     << " token stride=" << q.token_stride << " backward=" << backward);
        const double direction = backward ? -1 : 1;
        expect_close(q_data.now(), turned(q_data, q, cos, sin, direction), TestFixture::kBound,
                     "q");
        expect_close(k_data.now(), turned(k_data, k, cos, sin, direction), TestFixture::kBound,
                     "k");
      }
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
