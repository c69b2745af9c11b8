// SPDX-License-Identifier: Apache-2.0
// linear_log_prob: results that are exact whatever the logits, and what the launchers refuse.
#include "kernels/linear_log_prob/linear_log_prob.h"

#include <cmath>

#include "kernels/tests/device_array.h"

namespace tigon::linear_log_prob {
namespace {

using namespace testing_support;

constexpr int64_t kRows = 13, kHidden = 24, kColumns = 50;

struct Problem {
  int64_t columns_per_chunk = 0;  // all rows and columns in one, where 0
  int64_t max_valid_rows = -1;
  bool bias = false;
};

template <class P>
class LinearLogProb : public testing::Test {
 protected:
  using Elem = typename P::Elem;
  using Floats = DeviceArray<float>;

  struct Outputs {
    std::vector<float> logp, lse, entropy;
    std::vector<Elem> dx, dw;
    std::vector<float> dbias;
  };

  static size_t size(int64_t n) { return static_cast<size_t>(n); }

  void make(const Problem& problem) {
    p_ = problem;
    x_ = random_values<Elem>(size(kRows * kHidden), 1.0f, 1);
    w_ = random_values<Elem>(size(kColumns * kHidden), 0.5f, 2);
    bias_.assign(size(kColumns), Elem(0.0f));
    if (p_.bias) bias_ = random_values<Elem>(bias_.size(), 1.0f, 5);
    targets_ = random_targets(kRows, kColumns, -100);
    dlogp_ = random_values<float>(size(kRows), 1.0f, 3);
    dentropy_ = random_values<float>(size(kRows), 1.0f, 6);
  }

  template <class Args>
  void bind(Args& a, const DeviceArray<Elem>& x, const DeviceArray<Elem>& w,
            const DeviceArray<Elem>& bias, const DeviceArray<int64_t>& target) const {
    a.max_valid_rows = p_.max_valid_rows;
    if (p_.columns_per_chunk > 0) {
      a.split = Split::kVocabulary;
      a.logits_bytes = p_.columns_per_chunk * kRows * static_cast<int64_t>(sizeof(Elem));
    }
    a.x = view<const Elem>(x.data(), kRows, kHidden);
    a.w = view<const Elem>(w.data(), kColumns, kHidden);
    if (p_.bias) a.bias = view<const Elem>(bias.data(), kColumns);
    a.target = view<const int64_t>(target.data(), kRows);
  }

  // Forward, and backward on what it saved.
  Outputs run() {
    const DeviceArray<Elem> x(x_), w(w_), bias(bias_), dx(x_), dw(w_);
    const DeviceArray<int64_t> target(targets_);
    const std::vector<float> unset(size(kRows), -7.0f);
    const Floats logp(unset), lse(unset), entropy(unset), dlogp(dlogp_), dentropy(dentropy_);
    const Floats dbias(std::vector<float>(bias_.size(), -7.0f));
    const auto row = [&](const Floats& array) { return view(array.data(), kRows); };
    const auto given = [&](const Floats& array) { return view<const float>(array.data(), kRows); };
    Forward<P> f;
    bind(f, x, w, bias, target);
    f.logp = row(logp);
    f.lse = row(lse);
    f.entropy = row(entropy);
    launch(f, forward<P>);

    Backward<P> b;
    bind(b, x, w, bias, target);
    b.lse = given(lse);
    b.dlogp = given(dlogp);
    b.dentropy = given(dentropy);
    b.entropy = given(entropy);
    b.dx = view(dx.data(), kRows, kHidden);
    b.dw = view(dw.data(), kColumns, kHidden);
    if (p_.bias) b.dbias = view(dbias.data(), kColumns);
    launch(b, backward<P>);
    return {logp.download(), lse.download(), entropy.download(),
            dx.download(),   dw.download(),  dbias.download()};
  }

  Problem p_;
  std::vector<Elem> x_, w_, bias_;
  std::vector<int64_t> targets_;
  std::vector<float> dlogp_, dentropy_;
};

using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(LinearLogProb, Policies);

// The target has all the probability: its log-probability is 0, and so is every gradient.
TYPED_TEST(LinearLogProb, CertainToken) {
  for (const int64_t columns : {0, 16}) {
    this->make({.columns_per_chunk = columns, .bias = true});
    std::fill(this->x_.begin(), this->x_.end(), typename TypeParam::Elem(0.0f));
    this->bias_[3] = typename TypeParam::Elem(200.0f);
    for (auto& y : this->targets_) y = 3;
    const auto got = this->run();
    for (size_t t = 0; t < got.logp.size(); ++t) {
      EXPECT_EQ(got.logp[t], 0.0f);
      EXPECT_EQ(got.entropy[t], 0.0f);
    }
    for (const float d : got.dbias) EXPECT_EQ(d, 0.0f);
  }
}

// A class that a bias of -inf forbids is the target, and moves nothing beyond it.
TYPED_TEST(LinearLogProb, MaskedTarget) {
  using Elem = typename TypeParam::Elem;
  for (const int64_t columns : {0, 8}) {
    this->make({.columns_per_chunk = columns, .bias = true});
    for (size_t v = 0; v < this->bias_.size(); ++v)
      if (v % 5 == 1 || v > 20) this->bias_[v] = Elem(-INFINITY);
    this->targets_[0] = 30;
    const auto got = this->run();
    EXPECT_EQ(got.logp[0], -INFINITY);
    for (const Elem d : got.dx) EXPECT_TRUE(std::isfinite(static_cast<float>(d)));
  }
}

TYPED_TEST(LinearLogProb, AllClassesMasked) {
  for (const int64_t columns : {0, 8}) {
    this->make({.columns_per_chunk = columns, .bias = true});
    this->bias_.assign(this->bias_.size(), typename TypeParam::Elem(-INFINITY));
    const auto got = this->run();
    EXPECT_TRUE(std::isnan(got.logp[0]));
    EXPECT_EQ(got.logp[1], 0.0f);  // ignored
  }
}

TYPED_TEST(LinearLogProb, TargetThatIsNoClass) {
  for (const int64_t columns : {0, 16}) {
    for (const int64_t bad : {int64_t{-1}, int64_t{50}, int64_t{1} << 40}) {
      this->make({.columns_per_chunk = columns});
      this->targets_[0] = bad;
      const auto got = this->run();
      EXPECT_TRUE(std::isnan(got.logp[0]));
      EXPECT_TRUE(std::isfinite(got.lse[0]));
      EXPECT_TRUE(std::isnan(static_cast<float>(got.dx[0])));
      EXPECT_TRUE(std::isfinite(static_cast<float>(got.dx[24 * 2])));
    }
  }
}

TYPED_TEST(LinearLogProb, MoreValidRowsThanPromised) {
  this->make({.max_valid_rows = 8, .bias = true});
  const auto got = this->run();
  for (const auto* results : {&got.logp, &got.lse, &got.entropy, &got.dbias})
    for (const float v : *results) EXPECT_TRUE(std::isnan(v));
  for (const auto v : got.dx) EXPECT_TRUE(std::isnan(static_cast<float>(v)));
  for (const auto v : got.dw) EXPECT_TRUE(std::isnan(static_cast<float>(v)));
}

TYPED_TEST(LinearLogProb, RefusesBadArguments) {
  using Elem = typename TypeParam::Elem;
  this->make({});
  const DeviceArray<Elem> x(this->x_), w(this->w_), bias(this->bias_), dx(this->x_);
  const DeviceArray<int64_t> target(this->targets_);
  const DeviceArray<float> row(std::vector<float>(13)), sum(std::vector<float>(50 * 24));
  const auto given = view(static_cast<const float*>(row.data()), 13);
  Backward<TypeParam> good;
  this->bind(good, x, w, bias, target);
  good.lse = good.dlogp = given;
  good.dx = view(dx.data(), 13, 24);
  const DeviceBuffer scratch(workspace(good));
  good.scratch = {scratch.data(), scratch.bytes()};
  ASSERT_TRUE(backward(good, nullptr).ok());
  ASSERT_TRUE(tune(good).ok());
  const auto refused = [&](auto change) {
    auto bad = good;
    change(bad);
    return backward(bad, nullptr).code == Status::kInvalidArgument;
  };
  using A = Backward<TypeParam>;
  EXPECT_TRUE(refused([](A& a) { a.scratch.bytes -= 1; }));
  EXPECT_TRUE(refused([](A& a) { a.w.shape[1] = 23; }));
  EXPECT_TRUE(refused([](A& a) { a.dx.shape[0] = 12; }));
  EXPECT_TRUE(refused([](A& a) { a.target.data = nullptr; }));
  EXPECT_TRUE(refused([](A& a) { a.dlogp.shape[0] = 12; }));
  EXPECT_TRUE(refused([](A& a) { a.dentropy = a.dlogp; }));  // without the entropy
  EXPECT_TRUE(refused([&](A& a) { a.dw_accum = a.dw_fp32 = view(sum.data(), 50, 24); }));
  for (const float bad : {0.0f, -1.0f, INFINITY, NAN, 1e-39f})
    EXPECT_TRUE(refused([&](A& a) { a.temperature = bad; }));
  Forward<TypeParam> f;
  this->bind(f, x, w, bias, target);
  f.lse = view(row.data(), 13);
  EXPECT_EQ(forward(f, nullptr).code, Status::kInvalidArgument);  // without logp
}

}  // namespace
}  // namespace tigon::linear_log_prob
