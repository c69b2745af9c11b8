// SPDX-License-Identifier: Apache-2.0
// rope in a buffer that has q, k and v side by side, and what its launchers refuse.
#include "kernels/rope/rope.h"

#include <string>

#include "kernels/tests/test_tensor.h"

namespace tigon::rope {
namespace {

template <class P>
class Rope : public testing::Test {};
using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(Rope, Policies);

// q and k are columns of one [T, (Q + 2K) D] buffer, as one product of matrices makes them; v
// stays.
TYPED_TEST(Rope, TurnsPackedQkv) {
  using T = typename TypeParam::Elem;
  constexpr int64_t kTokens = 5, kQ = 4, kK = 2, kD = 16, kRow = (kQ + 2 * kK) * kD;
  TestTensor<T> packed(kTokens, kRow), apart_q(kTokens, kQ * kD), apart_k(kTokens, kK * kD);
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t i = 0; i < kQ * kD; ++i) apart_q.set(t, i, packed.made(t, i));
    for (int64_t i = 0; i < kK * kD; ++i) apart_k.set(t, i, packed.made(t, kQ * kD + i));
  }
  const TestTensor<float> cos(kTokens, kD / 2), sin(kTokens, kD / 2);
  Forward<TypeParam> args;
  args.cos = cos.const_view();
  args.sin = sin.const_view();
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
  constexpr Sections kChunked = Sections::kChunked, kThirds = Sections::kInterleaved;
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
