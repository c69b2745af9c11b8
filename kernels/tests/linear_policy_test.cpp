// SPDX-License-Identifier: Apache-2.0
// linear_policy: results that are exact whatever the logits, and what the launchers refuse.
#include "kernels/linear_policy/linear_policy.h"

#include "kernels/tests/device_array.h"

namespace tigon::linear_policy {
namespace {

using namespace testing_support;

using Args = ForwardBackward<F32>;
using Floats = DeviceArray<float>;

constexpr int64_t kRows = 13, kHidden = 24, kColumns = 50;

size_t size(int64_t n) { return static_cast<size_t>(n); }

class LinearPolicy : public testing::Test {
 protected:
  LinearPolicy()
      : x_(random_values<float>(size(kRows * kHidden), 1.0f, 1)),
        w_(random_values<float>(size(kColumns * kHidden), 0.3f, 2)),
        bias_(random_values<float>(size(kColumns), 0.5f, 5)),
        targets_(random_targets(kRows, kColumns, -100)),
        advantage_(random_values<float>(size(kRows), 1.0f, 3)),
        old_(random_values<float>(size(kRows), 1.0f, 4)),
        ref_(random_values<float>(size(kRows), 1.0f, 6)),
        weight_(random_values<float>(size(kRows), 1.0f, 7)) {
    for (float& v : old_) v -= 3.5f;
    for (float& v : ref_) v -= 3.5f;
  }

  struct Outputs {
    std::vector<float> loss, kl, clipped, entropy, logp, dx, dw, dbias;
  };

  // `change` sets options; -7 is what nobody writes.
  template <class Change>
  Outputs run(const Change& change) {
    Args a;
    const Floats x(x_), w(w_), bias(bias_), advantage(advantage_), old(old_), ref(ref_),
        weight(weight_);
    const DeviceArray<int64_t> target(targets_);
    const std::vector<float> unset(size(kRows), -7.0f);
    const Floats loss(unset), kl(unset), clipped(unset), entropy(unset), logp(unset);
    const Floats dx(std::vector<float>(x_.size(), -7.0f)), dw(std::vector<float>(w_.size(), -7.0f)),
        dbias(std::vector<float>(bias_.size(), -7.0f));
    const auto row = [](const Floats& v) {
      return view(static_cast<const float*>(v.data()), kRows);
    };
    a.x = view(static_cast<const float*>(x.data()), kRows, kHidden);
    a.w = view(static_cast<const float*>(w.data()), kColumns, kHidden);
    a.bias = view(static_cast<const float*>(bias.data()), kColumns);
    a.target = view(static_cast<const int64_t*>(target.data()), kRows);
    a.advantage = row(advantage);
    a.old_logp = row(old);
    a.ref_logp = row(ref);
    a.weight = row(weight);
    a.kl_weight = 0.1f;
    change(a);
    const int64_t losses = a.reduction == Reduction::kNone ? kRows : 1;
    a.loss = view(loss.data(), losses);
    a.kl = view(kl.data(), losses);
    a.clipped = view(clipped.data(), losses);
    a.entropy = view(entropy.data(), losses);
    a.logp = view(logp.data(), kRows);
    a.dx = view(dx.data(), kRows, kHidden);
    a.dw = view(dw.data(), kColumns, kHidden);
    a.dbias = view(dbias.data(), kColumns);
    launch(a, forward_backward<F32>);
    args_ = a;
    return {loss.download(), kl.download(), clipped.download(), entropy.download(),
            logp.download(), dx.download(), dw.download(),      dbias.download()};
  }

  std::vector<float> x_, w_, bias_;
  std::vector<int64_t> targets_;
  std::vector<float> advantage_, old_, ref_, weight_;
  Args args_;
};

TEST_F(LinearPolicy, MoreValidRowsThanPromised) {
  const Outputs got = run([](Args& a) { a.max_valid_rows = 8; });  // of 13 rows 9 are valid
  for (const float v : {got.loss[0], got.kl[0], got.clipped[0], got.entropy[0], got.dbias[0]})
    EXPECT_TRUE(std::isnan(v));
}

TEST_F(LinearPolicy, AllRowsIgnored) {
  targets_.assign(targets_.size(), -100);
  const Outputs got = run([](Args&) {});
  EXPECT_EQ(got.loss[0], 0.0f);
  for (const auto* all : {&got.dx, &got.dw, &got.dbias})
    for (const float v : *all) EXPECT_EQ(v, 0.0f);
}

// The token that was drawn has all the probability: logp 0, and no gradient whatever its loss.
TEST_F(LinearPolicy, CertainToken) {
  std::fill(x_.begin(), x_.end(), 0.0f);
  bias_[3] = 200.0f;
  for (auto& y : targets_) y = 3;
  const Outputs got = run([](Args& a) { a.ref_logp = {}, a.kl_weight = 0.0f; });
  for (const float v : got.logp) EXPECT_EQ(v, 0.0f);
  for (const float v : got.dbias) EXPECT_EQ(v, 0.0f);
}

// A class that a bias of -inf forbids; as a target its ratio is 0, and nothing moves.
TEST_F(LinearPolicy, MaskedToken) {
  bias_[3] = -INFINITY;
  targets_[0] = 3;
  const Outputs got = run([](Args& a) {
    a.ref_logp = {}, a.kl_weight = 0.0f, a.clip_low = 1.0f, a.reduction = Reduction::kNone;
  });
  EXPECT_EQ(got.logp[0], -INFINITY);
  EXPECT_EQ(got.loss[0], 0.0f);
  for (int64_t h = 0; h < kHidden; ++h) EXPECT_EQ(got.dx[size(h)], 0.0f);
  for (const float v : got.dbias) EXPECT_TRUE(std::isfinite(v));
}

TEST_F(LinearPolicy, TargetThatIsNoClass) {
  for (const int64_t bad : {int64_t{-1}, kColumns, int64_t{1} << 40}) {
    targets_[0] = bad;
    const Outputs got = run([](Args& a) { a.reduction = Reduction::kNone; });
    EXPECT_TRUE(std::isnan(got.loss[0]));
    EXPECT_TRUE(std::isnan(got.dx[0]));
    EXPECT_TRUE(std::isfinite(got.dx[size(2 * kHidden)]));
  }
}

TEST_F(LinearPolicy, RefusesBadArguments) {
  run([](Args&) {});
  const DeviceBuffer memory(size_t{1} << 20);  // of what is looked at when all is well
  const auto floats = [&](int64_t n) { return view(memory.as<float>(), n); };
  const auto given = [&](int64_t n) { return view(memory.as<const float>(), n); };
  const auto code = [&](auto change) {
    Args a = args_;
    a.x = view(memory.as<const float>(), kRows, kHidden);
    a.w = view(memory.as<const float>(), kColumns, kHidden);
    a.bias = given(kColumns);
    a.target = view(memory.as<const int64_t>(), kRows);
    a.advantage = a.old_logp = a.ref_logp = a.weight = given(kRows);
    change(a);
    return forward_backward(a, nullptr).code;
  };
  const auto refused = [&](auto change) { return code(change) == Status::kInvalidArgument; };
  EXPECT_TRUE(refused([](Args& a) { a.scratch.bytes = 0; }));
  EXPECT_TRUE(refused([](Args& a) { a.target.data = nullptr; }));
  EXPECT_TRUE(refused([](Args& a) { a.advantage = {}; }));
  EXPECT_TRUE(refused([](Args& a) { a.loss = {}; }));
  EXPECT_TRUE(refused([&](Args& a) { a.kl = floats(2); }));
  EXPECT_TRUE(refused([&](Args& a) { a.dloss = given(2); }));
  EXPECT_TRUE(refused([&](Args& a) { a.ref_logp = {}; }));  // with kl_weight
  EXPECT_TRUE(refused([&](Args& a) { a.sampling_logp = given(kRows), a.old_logp = {}; }));
  EXPECT_TRUE(refused([&](Args& a) { a.weight = given(kRows - 1); }));
  for (const float bad : {-1.0f, NAN}) {
    EXPECT_TRUE(refused([&](Args& a) { a.temperature = bad; }));
    EXPECT_TRUE(refused([&](Args& a) { a.clip_low = bad; }));
    EXPECT_TRUE(refused([&](Args& a) { a.clip_high = bad; }));
    EXPECT_TRUE(refused([&](Args& a) { a.delta = bad; }));
    EXPECT_TRUE(refused([&](Args& a) { a.sapo_positive = bad; }));
    EXPECT_TRUE(refused([&](Args& a) { a.sapo_negative = bad; }));
    EXPECT_TRUE(refused([&](Args& a) { a.importance_cap = bad; }));
  }
  EXPECT_TRUE(refused([](Args& a) { a.kl_weight = INFINITY; }));
}

}  // namespace
}  // namespace tigon::linear_policy
