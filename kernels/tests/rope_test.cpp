// SPDX-License-Identifier: Apache-2.0
// rope against a plain loop in double.
#include "kernels/rope/rope.h"

#include <limits>
#include <string>

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
  Options options = {};
  int64_t rows = 0;  // of cos and sin, which positions choose; 0: no positions
  bool elsewhere = false;
};
constexpr Pairing kHalf = Pairing::kHalf, kNext = Pairing::kInterleaved;
constexpr Sections kChunked = Sections::kChunked, kThirds = Sections::kInterleaved;
const Case kCases[] = {{1, 1, 1, 2},
                       {3, 3, 1, 6},
                       {7, 8, 2, 16},
                       {5, 32, 8, 128},
                       {3, 9, 2, 80},
                       {2, 2, 0, 64},
                       {3, 5, 3, 16, 8},
                       {3, 5, 3, 16, 3},
                       {2, 2, 1, 16, 0, 1},
                       {2, 1, 1, 5000},
                       {2, 300, 1, 16},
                       {3, 4, 1, 16, 0, 0, {0, kNext}},
                       {3, 5, 1, 6, 0, 0, {0, kNext}},
                       {3, 4, 1, 64, 0, 0, {32}},
                       {3, 4, 1, 64, 0, 0, {32, kNext}, 0, true},
                       {3, 4, 1, 64, 0, 0, {32}, 0, true},
                       {3, 4, 1, 10, 0, 0, {6}, 0, true},
                       {3, 2, 1, 5000, 0, 0, {16}, 0, true},
                       {9, 2, 1, 16, 0, 0, {}, 4},
                       {9, 2, 1, 16, 0, 0, {}, 40, true},
                       {9, 2, 1, 128, 0, 0, {0, kHalf, 24, 24, kChunked}, 20},
                       {9, 2, 1, 128, 0, 0, {0, kHalf, 20, 20, kThirds}, 20},
                       {9, 2, 1, 128, 0, 0, {64, kNext, 11, 10, kThirds}, 20, true},
                       {9, 2, 1, 14, 0, 0, {0, kHalf, 1, 2, kChunked}, 20}};

// Which of a token's positions pair j has.
int section_of(int64_t j, int64_t half, const Options& o) {
  if (o.height + o.width == 0) return 0;
  if (o.sections == kThirds) {
    if (j % 3 == 1 && j < 3 * o.height) return 1;
    return j % 3 == 2 && j < 3 * o.width ? 2 : 0;
  }
  if (j >= half - o.width) return 2;
  return j >= half - o.width - o.height ? 1 : 0;
}

struct Angles {
  TestTensor<float> cos, sin;
  TestTensor<int64_t> positions;
  bool chosen;

  static int64_t streams(const Options& o) { return o.height + o.width > 0 ? 3 : 1; }
  Angles(const Case& c, int64_t half)
      : cos(c.rows ? c.rows : c.t, half),
        sin(c.rows ? c.rows : c.t, half),
        positions(streams(c.options), c.t),
        chosen(c.rows > 0) {
    // The last row first, the first row, one that is none before and behind, then others.
    for (int64_t s = 0; s < streams(c.options); ++s)
      for (int64_t t = 0; t < c.t; ++t)
        positions.set(s, t,
                      static_cast<double>((c.rows - 1) * (t == 0) - (t == 2) + c.rows * (t == 3) +
                                          (t > 3) * ((5 * t + s) % (c.rows ? c.rows : 1))));
  }
  // NaN: there is none.
  double of(const TestTensor<float>& table, const Case& c, int64_t t, int64_t j) const {
    const int64_t half = (c.options.rotary ? c.options.rotary : c.d) / 2;
    const auto row =
        chosen ? static_cast<int64_t>(positions.made(section_of(j, half, c.options), t)) : t;
    const bool outside = chosen && (row < 0 || row >= c.rows);
    return outside ? std::numeric_limits<double>::quiet_NaN() : table.made(row, j);
  }
};

template <class T>
void expect_near(double got, double want, double scale) {
  if (std::isnan(want))
    ASSERT_TRUE(std::isnan(got)) << got;
  else
    ASSERT_NEAR(got, want, budget<T>(want, scale));
}

// Turns what was uploaded as x, in double, and compares what the kernel made of it in y.
template <class T>
void expect_turned(const TestTensor<T>& x, const TestTensor<T>& y, int64_t heads, const Case& c,
                   const Angles& angles, double direction) {
  ASSERT_TRUE(y.gaps_unchanged());
  const int64_t rotary = c.options.rotary ? c.options.rotary : c.d;
  for (int64_t t = 0; t < c.t; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t j = 0; j < rotary / 2; ++j) {
        SCOPED_TRACE(testing::Message() << t << ", " << h << ", pair " << j);
        const bool next = c.options.pairing == kNext;
        const int64_t low = h * c.d + (next ? 2 * j : j), high = low + (next ? 1 : rotary / 2);
        const double a = x.made(t, low), b = x.made(t, high);
        const double co = angles.of(angles.cos, c, t, j);
        const double si = direction * angles.of(angles.sin, c, t, j);
        expect_near<T>(y.got(t, low), a * co - b * si, std::fabs(a * co) + std::fabs(b * si));
        expect_near<T>(y.got(t, high), b * co + a * si, std::fabs(b * co) + std::fabs(a * si));
        if (testing::Test::HasFatalFailure()) return;
      }
      for (int64_t i = h * c.d + rotary; i < (h + 1) * c.d; ++i)
        ASSERT_EQ(y.got(t, i), x.made(t, i)) << t << ", " << i;
    }
}

// `set(args, q, k, q_out, k_out)` puts the views in their place.
template <class Args, class Set, class Pass>
void expect_pass(double direction, const Set& set, const Pass& pass) {
  using T = typename Args::Elem;
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message()
                 << "T=" << c.t << " Q=" << c.q << " K=" << c.k << " D=" << c.d << " pad=" << c.pad
                 << " shift=" << c.shift << " rotary=" << c.options.rotary << " rows=" << c.rows);
    const typename TestTensor<T>::Layout layout{c.pad, c.shift};
    TestTensor<T> q(c.t, c.q * c.d, layout), k(c.t, c.k * c.d, layout);
    TestTensor<T> q_out(c.t, c.q * c.d), k_out(c.t, c.k * c.d);
    const Angles angles(c, (c.options.rotary ? c.options.rotary : c.d) / 2);
    Args args;
    static_cast<Options&>(args) = c.options;
    args.cos = angles.cos.const_view();
    args.sin = angles.sin.const_view();
    if (angles.chosen) args.positions = angles.positions.const_view();
    const View<T, 3> nowhere;
    set(args, q.heads_view(c.q, c.d), k.heads_view(c.k, c.d),
        c.elsewhere ? q_out.heads_view(c.q, c.d) : nowhere,
        c.elsewhere ? k_out.heads_view(c.k, c.d) : nowhere);
    const Status status = pass(args);
    ASSERT_TRUE(status.ok()) << status.reason;
    for (TestTensor<T>* x : {&q, &k, &q_out, &k_out}) x->download();
    expect_turned(q, c.elsewhere ? q_out : q, c.q, c, angles, direction);
    expect_turned(k, c.elsewhere ? k_out : k, c.k, c, angles, direction);
  }
}

TYPED_TEST(Rope, Forward) {
  expect_pass<Forward<TypeParam>>(
      1,
      [](auto& a, auto q, auto k, auto q_out, auto k_out) {
        a.q = q, a.k = k, a.q_out = q_out, a.k_out = k_out;
      },
      [](const auto& args) { return forward(args, nullptr); });
}

TYPED_TEST(Rope, Backward) {
  expect_pass<Backward<TypeParam>>(
      -1,
      [](auto& a, auto q, auto k, auto q_out, auto k_out) {
        a.dq = q, a.dk = k, a.dq_out = q_out, a.dk_out = k_out;
      },
      [](const auto& args) { return backward(args, nullptr); });
}

// q and k are columns of one [T, (Q + 2K) D] buffer, as one product of matrices makes them; v
// stays.
TYPED_TEST(Rope, TurnsPackedQkv) {
  using T = typename TypeParam::Elem;
  constexpr int64_t kTokens = 5, kQ = 4, kK = 2, kD = 16, kRow = (kQ + 2 * kK) * kD;
  const Case c{kTokens, kQ, kK, kD};
  TestTensor<T> packed(kTokens, kRow), apart_q(kTokens, kQ * kD), apart_k(kTokens, kK * kD);
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t i = 0; i < kQ * kD; ++i) apart_q.set(t, i, packed.made(t, i));
    for (int64_t i = 0; i < kK * kD; ++i) apart_k.set(t, i, packed.made(t, kQ * kD + i));
  }
  const Angles angles(c, kD / 2);
  Forward<TypeParam> args;
  args.cos = angles.cos.const_view();
  args.sin = angles.sin.const_view();
  args.q = apart_q.heads_view(kQ, kD);
  args.k = apart_k.heads_view(kK, kD);
  ASSERT_TRUE(forward(args, nullptr).ok());
  T* const data = packed.view().data;
  args.q = {data, {kTokens, kQ, kD}, {kRow, kD, 1}};
  args.k = {data + kQ * kD, {kTokens, kK, kD}, {kRow, kD, 1}};
  ASSERT_TRUE(forward(args, nullptr).ok());
  for (TestTensor<T>* x : {&packed, &apart_q, &apart_k}) x->download();
  for (int64_t t = 0; t < kTokens; ++t)
    for (int64_t i = 0; i < kRow; ++i) {
      const int64_t of_k = i - kQ * kD, of_v = of_k - kK * kD;
      ASSERT_EQ(packed.got(t, i), of_k < 0   ? apart_q.got(t, i)
                                  : of_v < 0 ? apart_k.got(t, of_k)
                                             : packed.made(t, i));
    }
}

TEST(RopeArguments, AreChecked) {
  const TestTensor<float> x(2, 12), angles(2, 3), narrow(2, 2), more(5, 3);
  const TestTensor<int64_t> one(1, 2), three(3, 2);
  Forward<F32> good;
  good.q = good.k = x.heads_view(2, 6);
  good.cos = good.sin = angles.const_view();
  const auto refusal = [&](auto change) -> std::string {
    Forward<F32> args = good;
    change(args);
    const Status s = forward(args, nullptr);
    return s.code == Status::kInvalidArgument ? s.reason : "";
  };
  EXPECT_NE(refusal([&](auto& a) { a.q = a.k = x.heads_view(4, 3); }), "") << "odd head size";
  EXPECT_NE(refusal([&](auto& a) { a.sin = narrow.const_view(); }), "") << "one angle too few";
  EXPECT_NE(refusal([&](auto& a) { a.cos.data = nullptr; }), "") << "no cos";
  EXPECT_NE(refusal([&](auto& a) { a.cos = a.sin = more.const_view(); }), "") << "T is not S";
  for (const int rotary : {-2, 3, 8})
    EXPECT_NE(refusal([&](auto& a) { a.rotary = rotary; }).find("rotary"), std::string::npos);
  EXPECT_NE(refusal([&](auto& a) { a.q_out = x.heads_view(4, 3); }).find("q_out"),
            std::string::npos);
  EXPECT_NE(refusal([&](auto& a) { a.height = 1; }).find("need positions"), std::string::npos);
  EXPECT_NE(refusal([&](auto& a) { a.positions = three.const_view(); }).find("[1, T]"),
            std::string::npos);
  const auto sections = [&](int height, int width, Sections kind) {
    return refusal([&](auto& a) {
      a.positions = three.const_view();
      a.height = height, a.width = width, a.sections = kind;
    });
  };
  EXPECT_EQ(sections(1, 2, kChunked), "");
  EXPECT_NE(sections(2, 2, kChunked).find("R/2"), std::string::npos);
  EXPECT_EQ(sections(1, 1, kThirds), "");
  EXPECT_NE(sections(2, 0, kThirds).find("third"), std::string::npos);
  EXPECT_NE(sections(0, 2, kThirds).find("third"), std::string::npos);
  EXPECT_NE(sections(-1, 0, kChunked).find("0 or more"), std::string::npos);
  EXPECT_EQ(refusal([&](auto& a) {
              a.positions = one.const_view();
              a.cos = a.sin = more.const_view();
            }),
            "");
  Forward<F32> none;
  none.q = none.k = view(static_cast<float*>(nullptr), 0, 2, 6);
  none.cos = none.sin = view(static_cast<const float*>(nullptr), 0, 3);
  EXPECT_TRUE(forward(none, nullptr).ok());
}

}  // namespace
}  // namespace tigon::rope
