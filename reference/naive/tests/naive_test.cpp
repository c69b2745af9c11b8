// Every op, pass and storage type of the baselines against plain loops in double, on whichever
// device the build is for. The bounds are loose: a baseline is as exact as an eager framework.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <sstream>

#include "kernels/device/runtime.h"
#include "reference/naive/cross_entropy.h"
#include "reference/naive/linear_cross_entropy.h"
#include "reference/naive/rms_norm.h"
#include "reference/naive/rope.h"
#include "reference/naive/swiglu.h"

namespace tigon::naive {
namespace {

using Values = std::vector<double>;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A device array with a copy of its first contents, as stored, in double.
template <class T>
class Data {
 public:
  explicit Data(const Values& values) : buffer_(std::max<size_t>(1, values.size()) * sizeof(T)) {
    std::vector<T> stored;
    for (double v : values) stored.push_back(T(v));
    size_ = stored.size();
    if (size_ > 0) device_upload(buffer_.data(), stored.data(), size_ * sizeof(T));
    host_ = now();
  }
  explicit Data(size_t size) : Data(Values(size, -77.0)) {}  // an output, to be overwritten

  T* device() const { return static_cast<T*>(buffer_.data()); }
  double operator[](int64_t i) const { return host_[static_cast<size_t>(i)]; }
  Values now() const {
    device_synchronize();
    std::vector<T> stored(size_);
    device_download(stored.data(), buffer_.data(), size_ * sizeof(T));
    Values values;
    for (T v : stored) values.push_back(static_cast<double>(v));
    return values;
  }

 private:
  DeviceBuffer buffer_;
  size_t size_ = 0;
  Values host_;
};

Values normal(int64_t n, uint64_t seed, double scale = 1.0) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> distribution(0.0, scale);
  Values values(static_cast<size_t>(n));
  for (double& v : values) v = distribution(generator);
  return values;
}

void expect_ok(const Status& s) { ASSERT_TRUE(s.ok()) << "status " << s.code << ": " << s.reason; }

// Norm-wise: |got - want| <= bound * (largest finite |want| + |want|); NaN exactly where wanted.
void expect_close(const Values& got, const Values& want, double bound, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double scale = 0;
  for (double w : want)
    if (std::isfinite(w)) scale = std::max(scale, std::abs(w));
  int wrong = 0;
  std::ostringstream message;
  for (size_t i = 0; i < got.size(); ++i) {
    const bool both_nan = std::isnan(got[i]) && std::isnan(want[i]);
    if (both_nan || std::abs(got[i] - want[i]) <= bound * scale) continue;
    if (++wrong <= 5) message << "\n  [" << i << "] got " << got[i] << ", want " << want[i];
  }
  EXPECT_EQ(wrong, 0) << what << ": " << wrong << " of " << got.size()
                      << " elements are wrong, largest is " << scale << message.str();
}

template <class P>
struct Naive : testing::Test {
  using Elem = typename P::Elem;
  static constexpr double kUnit = unit_roundoff(dtype_of<Elem>);
  static constexpr double kBound = 8 * kUnit + 2e-6;  // of values rounded a few times
};
using Policies = testing::Types<F32, BF16, F16>;
struct PolicyName {
  template <class P>
  static std::string GetName(int) {
    return name_of(dtype_of<typename P::Elem>);
  }
};
TYPED_TEST_SUITE(Naive, Policies, PolicyName);

// Rows of H elements, `pitch` apart.
struct Rows {
  int64_t t, h, pitch;
};
template <class T>
View<T, 2> rows(T* data, const Rows& r) {
  View<T, 2> v = view(data, r.t, r.h);
  v.stride[0] = r.pitch;
  return v;
}
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
          expect_ok(rms_norm::forward(f, nullptr));
          rms_norm::Backward<TypeParam> b;
          b.dy = rows<const Elem>(dy.device(), r);
          b.x = f.x;
          b.w = f.w;
          b.rstd = view<const float>(rstd.device(), r.t);
          b.dx = rows(dx.device(), r);
          if (weighted) b.dw = view(dw.device(), r.h);
          b.offset = offset;
          expect_ok(rms_norm::backward(b, nullptr));

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
  expect_ok(rms_norm::backward(b, nullptr));
  b.dx = view(dy.device(), t, h);
  expect_ok(rms_norm::backward(b, nullptr));
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
    expect_ok(swiglu::forward(f, nullptr));
    swiglu::Backward<TypeParam> g;
    g.dy = rows<const Elem>(dy.device(), r);
    g.a = f.a;
    g.b = f.b;
    g.da = rows(da.device(), r);
    g.db = rows(db.device(), r);
    expect_ok(swiglu::backward(g, nullptr));
    g.da = rows(a.device(), r);
    g.db = rows(b.device(), r);
    expect_ok(swiglu::backward(g, nullptr));

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
          expect_ok(pass(args, nullptr));
        };
        using F = rope::Forward<TypeParam>;
        using B = rope::Backward<TypeParam>;
        if (backward)
          run(B{}, &B::dq, &B::dk, rope::backward<TypeParam>);
        else
          run(F{}, &F::q, &F::k, rope::forward<TypeParam>);
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
// Of few sizes, because cuDNN compiles each operation anew for every size.
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

// int64 has no conversion to the Data's doubles that matters here.
struct DeviceTargets {
  explicit DeviceTargets(const std::vector<int64_t>& y)
      : buffer(std::max<size_t>(1, y.size()) * sizeof(int64_t)) {
    if (!y.empty()) device_upload(buffer.data(), y.data(), y.size() * sizeof(int64_t));
    v = view(static_cast<const int64_t*>(buffer.data()), y.size());
  }
  DeviceBuffer buffer;
  View<const int64_t, 1> v;
};

template <class Args>
void set_options(Args& args, const LossCase& c) {
  static_cast<LossOptions&>(args) = c.options;
}

TYPED_TEST(Naive, CrossEntropy) {
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
    expect_ok(cross_entropy::forward(f, nullptr));

    cross_entropy::Backward<TypeParam> b;
    set_options(b, c);
    b.logits = rows(dx.device(), r);
    b.target = target.v;
    b.lse = view<const float>(lse.device(), c.t);
    if (c.with_dloss) b.dloss = view<const float>(dloss.device(), losses);
    expect_ok(cross_entropy::backward(b, nullptr));

    cross_entropy::ForwardBackward<TypeParam> fb;
    set_options(fb, c);
    fb.logits = rows(dx_both.device(), r);
    fb.target = target.v;
    fb.dloss = b.dloss;
    fb.loss = view(loss_both.device(), losses);
    fb.lse = view(lse_both.device(), c.t);
    expect_ok(cross_entropy::forward_backward(fb, nullptr));

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

TYPED_TEST(Naive, CrossEntropyIgnoresBadLogitsOfIgnoredRows) {
  using Elem = typename TypeParam::Elem;
  const Data<Elem> x(Values{kNaN, 1, std::numeric_limits<double>::infinity(), 1, 2, 3});
  const DeviceTargets target({-100, 1});
  const Data<float> loss(size_t{1}), lse(size_t{2});
  cross_entropy::ForwardBackward<TypeParam> fb;
  fb.logits = view(x.device(), 2, 3);
  fb.target = target.v;
  fb.loss = view(loss.device(), 1);
  fb.lse = view(lse.device(), 2);
  expect_ok(cross_entropy::forward_backward(fb, nullptr));
  const Loss want = loss_of({0, 0, 0, 1, 2, 3}, {-100, 1}, 3, {}, {});
  expect_close(loss.now(), want.loss, 1e-5, "loss");
  expect_close(x.now(), want.gradient, 4 * TestFixture::kUnit + 1e-5, "gradient");
}

TYPED_TEST(Naive, CrossEntropyOfMaskedVocabulary) {
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
  expect_ok(cross_entropy::forward_backward(fb, nullptr));
  const Loss want = loss_of(logits, {2, 0}, 3, {}, {});
  expect_close(lse.now(), want.lse, 1e-5, "lse");
  expect_close(loss.now(), want.loss, 1e-5, "loss");
  expect_close(x.now(), want.gradient, 4 * TestFixture::kUnit + 1e-5, "gradient");
}

TYPED_TEST(Naive, LinearCrossEntropy) {
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
    expect_ok(linear_cross_entropy::forward(f, nullptr));
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
    expect_ok(linear_cross_entropy::forward_backward(fb, nullptr));
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
    expect_ok(linear_cross_entropy::forward_backward(fb, nullptr));
    expect_close(loss.now(), want.loss, bound, "loss without dx and dw");
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
  expect_ok(rms_norm::backward(b, nullptr));
  EXPECT_EQ(floats.now(), Values(8, 0.0));

  swiglu::Forward<TypeParam> s;
  s.a = s.b = b.x;
  s.y = b.dx;
  expect_ok(swiglu::forward(s, nullptr));

  linear_cross_entropy::ForwardBackward<TypeParam> fb;
  fb.x = view<const Elem>(elems.device(), 0, 4);
  fb.w = view<const Elem>(elems.device(), 2, 4);
  fb.target = target.v;
  fb.loss = view(loss.device(), 1);
  fb.lse = view(floats.device(), 0);
  fb.dw = view(dw.device(), 2, 4);
  expect_ok(linear_cross_entropy::forward_backward(fb, nullptr));
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
    expect_ok(swiglu::forward(f, nullptr));
    EXPECT_EQ(device_memory_stats().high_water - tensors, 4096 * sizeof(float)) << "silu(a)";
    EXPECT_EQ(device_memory_stats().current, tensors);
  }
  EXPECT_EQ(device_memory_stats().current, before);
}

}  // namespace
}  // namespace tigon::naive
