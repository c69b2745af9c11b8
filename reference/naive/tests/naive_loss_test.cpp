// SPDX-License-Identifier: Apache-2.0
// Losses of the baselines against plain loops in double, with the bounds of naive_test.cpp.
#include "reference/naive/cross_entropy.h"
#include "reference/naive/linear_cross_entropy.h"
#include "reference/naive/tests/naive_problem.h"

namespace tigon::naive {
namespace {

template <class P>
struct NaiveLoss : OfPolicy<P> {};
TYPED_TEST_SUITE(NaiveLoss, Policies, PolicyName);

// The loss and its gradient in double.
struct Loss {
  Values loss, lse, gradient;  // gradient [T, V]
};
Loss loss_of(const Values& logits, const std::vector<int64_t>& target, int64_t v,
             const LossOptions& o, const Values& dloss) {
  const auto tokens = static_cast<int64_t>(target.size());
  Loss r{Values(target.size()), Values(target.size()), Values(logits.size())};
  double count = 0;
  for (int64_t y : target) count += y != o.ignore_index;
  const double share = o.reduction == Reduction::kMean ? 1 / std::max(count, 1.0) : 1.0;
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t y = target[t];
    if (y == o.ignore_index) continue;
    const bool valid = y >= 0 && y < v;
    const bool none = o.reduction == Reduction::kNone;
    const double up = share * (dloss.empty() ? 1.0 : dloss[none ? t : 0]);
    const auto raw = [&](int64_t i) { return logits[t * v + i]; };
    const auto x = [&](int64_t i) {
      return o.softcap > 0 ? o.softcap * std::tanh(raw(i) / o.softcap) : raw(i);
    };
    double sum = 0, mean = 0;
    for (int64_t i = 0; i < v; ++i) sum += std::exp(x(i)), mean += x(i) / static_cast<double>(v);
    const double lse = std::log(sum), a = o.label_smoothing;
    r.lse[t] = lse;
    r.loss[t] =
        valid ? (1 - a) * (lse - x(y)) + (a != 0 ? a * (lse - mean) : 0) + o.z_loss * lse * lse
              : kNaN;
    for (int64_t i = 0; i < v; ++i) {
      const double slope = o.softcap > 0 ? 1 - std::pow(std::tanh(raw(i) / o.softcap), 2) : 1.0;
      const double p = std::exp(x(i) - lse);
      const double d =
          (1 + 2 * o.z_loss * lse) * p - a / static_cast<double>(v) - (i == y ? 1 - a : 0);
      r.gradient[t * v + i] = valid ? up * d * slope : kNaN;
    }
  }
  if (o.reduction != Reduction::kNone) {
    double total = 0;
    for (double l : r.loss) total += l * share;
    r.loss = {total};
  }
  return r;
}

struct LossCase {
  const char* name;
  int64_t t, v;
  LossOptions options;
  std::vector<int64_t> special;  // targets of the first rows
  bool with_dloss;
};
// Of few sizes, because cuDNN compiles each operation again for every size.
std::vector<LossCase> loss_cases() {
  std::vector<LossCase> cases{{"plain", 9, 37, {}, {}, false},
                              {"one token", 1, 8, {}, {}, true},
                              {"ignored", 9, 37, {}, {-100, -100}, true},
                              {"all ignored", 9, 37, {}, std::vector<int64_t>(9, -100), false},
                              {"invalid", 9, 37, {}, {-100, 37, -1}, false},
                              {"smoothing", 9, 37, {}, {-100}, false},
                              {"z loss", 9, 37, {}, {-100}, true},
                              {"softcap", 9, 37, {}, {}, false},
                              {"everything, none", 10, 1003, {}, {7, 7}, true},
                              {"sum", 9, 37, {}, {-100}, true}};
  cases[5].options.label_smoothing = 0.1f;
  cases[6].options.z_loss = 1e-2f;
  cases[7].options.softcap = 3.0f;
  cases[8].options = {7, 0.2f, 1e-3f, 5.0f, Reduction::kNone};
  cases[9].options.reduction = Reduction::kSum;
  return cases;
}

std::vector<int64_t> targets(const LossCase& c) {
  std::vector<int64_t> y = c.special;
  while (static_cast<int64_t>(y.size()) < c.t)
    y.push_back((31 * static_cast<int64_t>(y.size()) + 5) % c.v);
  return y;
}

template <class Args>
void set_options(Args& args, const LossCase& c) {
  static_cast<LossOptions&>(args) = c.options;
}

TYPED_TEST(NaiveLoss, CrossEntropy) {
  using Elem = typename TypeParam::Elem;
  for (const LossCase& c : loss_cases()) {
    SCOPED_TRACE(c.name);
    const int64_t pitch = c.v + 3, n = c.t * pitch;
    const int64_t losses = c.options.reduction == Reduction::kNone ? c.t : 1;
    const Values start = normal(n, 5, 2);
    const std::vector<int64_t> y = targets(c);
    const DeviceTargets target(y);
    const Data<Elem> x(start), dx(start), dx_both(start);
    const Data<float> dloss(normal(losses, 6)), loss(static_cast<size_t>(losses)),
        lse(static_cast<size_t>(c.t)), loss_both(static_cast<size_t>(losses)),
        lse_both(static_cast<size_t>(c.t));
    Values packed, upstream;
    for (int64_t t = 0; t < c.t; ++t)
      for (int64_t i = 0; i < c.v; ++i) packed.push_back(x[t * pitch + i]);
    if (c.with_dloss)
      for (int64_t i = 0; i < losses; ++i) upstream.push_back(dloss[i]);
    const Loss want = loss_of(packed, y, c.v, c.options, upstream);
    const Rows r{c.t, c.v, pitch};

    cross_entropy::Forward<TypeParam> f;
    set_options(f, c);
    f.logits = rows<const Elem>(x.device(), r);
    f.target = target.v;
    f.loss = view(loss.device(), losses);
    f.lse = view(lse.device(), c.t);
    expect_ok(naive::forward(f, nullptr));

    cross_entropy::Backward<TypeParam> b;
    set_options(b, c);
    b.logits = rows(dx.device(), r);
    b.target = target.v;
    b.lse = view<const float>(lse.device(), c.t);
    if (c.with_dloss) b.dloss = view<const float>(dloss.device(), losses);
    expect_ok(naive::backward(b, nullptr));

    cross_entropy::ForwardBackward<TypeParam> fb;
    set_options(fb, c);
    fb.logits = rows(dx_both.device(), r);
    fb.target = target.v;
    fb.dloss = b.dloss;
    fb.loss = view(loss_both.device(), losses);
    fb.lse = view(lse_both.device(), c.t);
    expect_ok(naive::forward_backward(fb, nullptr));

    // Logits are exact; the softcap's steps round to the element type.
    const double bound = c.options.softcap > 0 ? 16 * TestFixture::kUnit + 1e-5 : 1e-5;
    expect_close(loss.now(), want.loss, bound, "loss");
    expect_close(lse.now(), want.lse, bound, "lse");
    expect_close(loss_both.now(), want.loss, bound, "loss of forward_backward");
    expect_close(lse_both.now(), want.lse, bound, "lse of forward_backward");
    for (const Data<Elem>* got : {&dx, &dx_both}) {
      const Values all = got->now();
      Values gradient;
      for (int64_t t = 0; t < c.t; ++t) {
        for (int64_t i = 0; i < c.v; ++i) gradient.push_back(all[t * pitch + i]);
        for (int64_t i = c.v; i < pitch; ++i) EXPECT_EQ(all[t * pitch + i], x[t * pitch + i]);
      }
      expect_close(gradient, want.gradient, 16 * TestFixture::kUnit + 1e-5,
                   got == &dx ? "gradient" : "gradient of forward_backward");
    }
    const Values lse_now = lse.now();
    for (int64_t t = 0; t < c.t; ++t) {
      if (y[t] == c.options.ignore_index) {
        EXPECT_EQ(lse_now[t], 0.0);
      }
    }
  }
}

TYPED_TEST(NaiveLoss, CrossEntropyIgnoresBadLogitsOfIgnoredRows) {
  using Elem = typename TypeParam::Elem;
  const Data<Elem> x(Values{kNaN, 1, std::numeric_limits<double>::infinity(), 1, 2, 3});
  const DeviceTargets target({-100, 1});
  const Data<float> loss(size_t{1}), lse(size_t{2});
  cross_entropy::ForwardBackward<TypeParam> fb;
  fb.logits = view(x.device(), 2, 3);
  fb.target = target.v;
  fb.loss = view(loss.device(), 1);
  fb.lse = view(lse.device(), 2);
  expect_ok(naive::forward_backward(fb, nullptr));
  const Loss want = loss_of({0, 0, 0, 1, 2, 3}, {-100, 1}, 3, {}, {});
  expect_close(loss.now(), want.loss, 1e-5, "loss");
  expect_close(x.now(), want.gradient, 4 * TestFixture::kUnit + 1e-5, "gradient");
}

TYPED_TEST(NaiveLoss, CrossEntropyOfMaskedVocabulary) {
  using Elem = typename TypeParam::Elem;
  const double minus_infinity = -std::numeric_limits<double>::infinity();
  const Values logits{minus_infinity, 1, 2, 0.5, minus_infinity, 1};
  const Data<Elem> x(logits);
  const DeviceTargets target({2, 0});
  const Data<float> loss(size_t{1}), lse(size_t{2});
  cross_entropy::ForwardBackward<TypeParam> fb;
  fb.logits = view(x.device(), 2, 3);
  fb.target = target.v;
  fb.loss = view(loss.device(), 1);
  fb.lse = view(lse.device(), 2);
  expect_ok(naive::forward_backward(fb, nullptr));
  const Loss want = loss_of(logits, {2, 0}, 3, {}, {});
  expect_close(lse.now(), want.lse, 1e-5, "lse");
  expect_close(loss.now(), want.loss, 1e-5, "loss");
  expect_close(x.now(), want.gradient, 4 * TestFixture::kUnit + 1e-5, "gradient");
}

TYPED_TEST(NaiveLoss, LinearCrossEntropy) {
  using Elem = typename TypeParam::Elem;
  const int64_t h = 24;
  for (const LossCase& c : loss_cases()) {
    SCOPED_TRACE(c.name);
    const int64_t losses = c.options.reduction == Reduction::kNone ? c.t : 1;
    const std::vector<int64_t> y = targets(c);
    const DeviceTargets target(y);
    const Data<Elem> x(normal(c.t * h, 7, 0.3)), w(normal(c.v * h, 8)), dx(c.t * h), dw(c.v * h);
    const Data<float> dloss(normal(losses, 6)), loss(static_cast<size_t>(losses)),
        lse(static_cast<size_t>(c.t));
    Values logits, upstream;
    for (int64_t t = 0; t < c.t; ++t)
      for (int64_t i = 0; i < c.v; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < h; ++j) sum += x[t * h + j] * w[i * h + j];
        logits.push_back(sum);
      }
    if (c.with_dloss)
      for (int64_t i = 0; i < losses; ++i) upstream.push_back(dloss[i]);
    const Loss want = loss_of(logits, y, c.v, c.options, upstream);
    const double bound = 32 * TestFixture::kUnit + 2e-5;

    linear_cross_entropy::Forward<TypeParam> f;
    set_options(f, c);
    f.x = view<const Elem>(x.device(), c.t, h);
    f.w = view<const Elem>(w.device(), c.v, h);
    f.target = target.v;
    f.loss = view(loss.device(), losses);
    f.lse = view(lse.device(), c.t);
    expect_ok(naive::forward(f, nullptr));
    expect_close(loss.now(), want.loss, bound, "loss");

    linear_cross_entropy::ForwardBackward<TypeParam> fb;
    set_options(fb, c);
    fb.x = f.x;
    fb.w = f.w;
    fb.target = f.target;
    if (c.with_dloss) fb.dloss = view<const float>(dloss.device(), losses);
    fb.loss = f.loss;
    fb.lse = f.lse;
    fb.dx = view(dx.device(), c.t, h);
    fb.dw = view(dw.device(), c.v, h);
    expect_ok(naive::forward_backward(fb, nullptr));
    expect_close(loss.now(), want.loss, bound, "loss of forward_backward");
    expect_close(lse.now(), want.lse, bound, "lse");

    Values dx_want(static_cast<size_t>(c.t * h)), dw_want(static_cast<size_t>(c.v * h));
    for (int64_t t = 0; t < c.t; ++t)
      for (int64_t i = 0; i < c.v; ++i)
        for (int64_t j = 0; j < h; ++j) {
          dx_want[t * h + j] += want.gradient[t * c.v + i] * w[i * h + j];
          dw_want[i * h + j] += want.gradient[t * c.v + i] * x[t * h + j];
        }
    expect_close(dx.now(), dx_want, bound, "dx");
    expect_close(dw.now(), dw_want, bound, "dw");

    fb.dx = {};
    fb.dw = {};
    expect_ok(naive::forward_backward(fb, nullptr));
    expect_close(loss.now(), want.loss, bound, "loss without dx and dw");
  }
}

}  // namespace
}  // namespace tigon::naive
