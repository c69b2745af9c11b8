// SPDX-License-Identifier: Apache-2.0
// linear_divergence: equal layers, and what its launchers refuse.
#include "kernels/linear_divergence/linear_divergence.h"

#include "kernels/tests/device_array.h"

namespace tigon::linear_divergence {
namespace {

using namespace testing_support;

template <class P>
class LinearDivergence : public testing::Test {
 protected:
  using Elem = typename P::Elem;
  static constexpr int64_t kRows = 5, kHidden = 24, kColumns = 50;
  static constexpr size_t size(int64_t n) { return static_cast<size_t>(n); }

  LinearDivergence()
      : x_(random_values<Elem>(size(kRows * kHidden), 1.0f, 1)),
        w_(random_values<Elem>(size(kColumns * kHidden), 0.5f, 2)),
        dx_(std::vector<Elem>(size(kRows * kHidden), Elem(kUnset))),
        dw_(std::vector<Elem>(size(kColumns * kHidden), Elem(kUnset))),
        target_(std::vector<int64_t>(size(kRows), 0)),
        dloss_(random_values<float>(size(kRows), 1.0f, 3)) {}

  // The teacher is the student.
  template <class Args>
  Args call() {
    Args a;
    a.x = a.teacher_x = view(static_cast<const Elem*>(x_.data()), kRows, kHidden);
    a.w = a.teacher_w = view(static_cast<const Elem*>(w_.data()), kColumns, kHidden);
    a.target = view(static_cast<const int64_t*>(target_.data()), kRows);
    return a;
  }
  Forward<P> forward_call() {
    auto a = call<Forward<P>>();
    a.loss = view(loss_.data(), kRows);
    a.lse = view(lse_.data(), kRows);
    a.teacher_lse = view(teacher_lse_.data(), kRows);
    a.slope = view(slope_.data(), kRows);
    return a;
  }
  Backward<P> backward_call() {
    auto a = call<Backward<P>>();
    const auto given = [](const DeviceArray<float>& array) {
      return view(static_cast<const float*>(array.data()), kRows);
    };
    a.lse = given(lse_);
    a.teacher_lse = given(teacher_lse_);
    a.slope = given(slope_);
    a.dloss = given(dloss_);
    a.dx = view(dx_.data(), kRows, kHidden);
    a.dw = view(dw_.data(), kColumns, kHidden);
    return a;
  }
  template <class Args, class Launch>
  static void run(Args a, const Launch& launch) {
    const DeviceArray<char> scratch(std::vector<char>(workspace(a)));
    a.scratch = {scratch.data(), workspace(a)};
    const Status s = launch(a, nullptr);
    ASSERT_TRUE(s.ok()) << s.reason;
  }

  static constexpr float kUnset = -7.0f;
  static DeviceArray<float> unset() {
    return DeviceArray<float>(std::vector<float>(size(kRows), kUnset));
  }
  const DeviceArray<Elem> x_, w_, dx_, dw_;
  const DeviceArray<int64_t> target_;
  const DeviceArray<float> dloss_, loss_ = unset(), lse_ = unset(), teacher_lse_ = unset(),
                                   slope_ = unset();
};
using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(LinearDivergence, Policies);

// Equal logits are rounded alike, in whole and in chunks of rows or columns.
TYPED_TEST(LinearDivergence, OfEqualLayersIsExactlyZero) {
  for (const Kind kind : {Kind::kForwardKl, Kind::kReverseKl, Kind::kJsd})
    for (const Split split : {Split::kRows, Split::kVocabulary}) {
      SCOPED_TRACE(testing::Message()
                   << "kind " << static_cast<int>(kind) << " split " << static_cast<int>(split));
      const auto with_options = [&](auto a) {
        a.kind = kind;
        a.split = split;
        a.logits_bytes = 200;
        return a;
      };
      this->run(with_options(this->forward_call()), forward<TypeParam>);
      this->run(with_options(this->backward_call()), backward<TypeParam>);
      for (const float loss : this->loss_.download()) ASSERT_EQ(loss, 0.0f);
      for (const auto d : this->dx_.download()) ASSERT_EQ(static_cast<float>(d), 0.0f);
      for (const auto d : this->dw_.download()) ASSERT_EQ(static_cast<float>(d), 0.0f);
    }
}

TYPED_TEST(LinearDivergence, RefusesATeacherThatDoesNotFit) {
  const auto refused = [&](const auto& change) {
    auto a = this->forward_call();
    change(&a);
    return forward(a, nullptr).code == Status::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](auto* a) { a->teacher_x.shape[0] -= 1; }));
  EXPECT_TRUE(refused([](auto* a) { a->teacher_x.shape[1] -= 1; }));
  EXPECT_TRUE(refused([](auto* a) { a->teacher_w.shape[0] -= 1; }));
  EXPECT_TRUE(refused([](auto* a) { a->teacher_w.data = nullptr; }));
  EXPECT_TRUE(refused([](auto* a) { a->target = {}; }));
  EXPECT_TRUE(refused([](auto* a) { a->beta = 1.5f; }));
}

}  // namespace
}  // namespace tigon::linear_divergence
