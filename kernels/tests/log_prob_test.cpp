// SPDX-License-Identifier: Apache-2.0
// log_prob against a plain loop in double, in layouts that the contract's cases do not reach, and
// what its launchers refuse.
#include "kernels/log_prob/log_prob.h"

#include "kernels/tests/loss_reference.h"

namespace tigon::log_prob {
namespace {

using namespace testing_support;

constexpr float kUnset = -7.0f;

struct Problem {
  int64_t rows = 4, columns = 40;
  float temperature = 1.0f;
  bool entropy = true;
  int64_t pad = 0, shift = 0;  // elements after each row of dlogits and before its first
};
// A block of 128 threads, one of 512, two, four and eight that share a row; rows of logits with
// heads and tails, and dlogits aligned alike, otherwise from row to row, and otherwise everywhere.
const Problem kProblems[] = {
    {.columns = 1},
    {.columns = 7, .temperature = 0.25f},
    {.columns = 1003, .entropy = false},
    {.columns = 1003, .pad = 8},
    {.columns = 4099, .temperature = 2.0f, .shift = 3},
    {.columns = 20001, .pad = 5, .shift = 1},
    {.columns = 70001, .entropy = false, .shift = 1},
    {.columns = 150001, .temperature = 0.5f},
    {.columns = 300001},
};

template <class P>
class LogProb : public testing::Test {
 protected:
  using Elem = typename P::Elem;
  using Floats = DeviceArray<float>;

  void make(const Problem& problem) {
    p_ = problem;
    stride_ = p_.columns + p_.pad;
    logits_ = random_values<Elem>(size(p_.rows * p_.columns), 3 * p_.temperature, 1);
    targets_ = random_targets(p_.rows, p_.columns, -100);
    dlogp_ = random_values<float>(size(p_.rows), 1.0f, 2);
    dentropy_ = random_values<float>(size(p_.rows), 1.0f, 3);
  }
  static size_t size(int64_t n) { return static_cast<size_t>(n); }

  struct Results {
    std::vector<float> logp, lse, entropy;
    std::vector<Elem> dlogits;
  };
  // Forward, and backward on what it saved.
  Results run() {
    const DeviceArray<Elem> logits(logits_);
    const DeviceArray<int64_t> target(targets_);
    const Floats poison(std::vector<float>(size(p_.rows), kUnset));
    const Floats logp(poison.download()), lse(poison.download()), entropy(poison.download());
    const Floats dlogp(dlogp_), dentropy(dentropy_);
    const auto row = [&](const auto& array) { return view(array.data(), p_.rows); };
    const auto given = [&](const Floats& array) {
      return view(static_cast<const float*>(array.data()), p_.rows);
    };

    Forward<P> f;
    f.temperature = p_.temperature;
    f.logits = view(static_cast<const Elem*>(logits.data()), p_.rows, p_.columns);
    f.target = view(static_cast<const int64_t*>(target.data()), p_.rows);
    f.logp = row(logp);
    f.lse = row(lse);
    if (p_.entropy) f.entropy = row(entropy);
    EXPECT_TRUE(forward(f, nullptr).ok());

    const std::vector<Elem> gaps(size(p_.rows * stride_), Elem(kUnset));
    const DeviceArray<Elem> dlogits(gaps, p_.shift);
    Backward<P> b;
    b.temperature = p_.temperature;
    b.logits = f.logits;
    b.target = f.target;
    b.lse = given(lse);
    b.dlogp = given(dlogp);
    if (p_.entropy) {
      b.dentropy = given(dentropy);
      b.entropy = given(entropy);
    }
    b.dlogits = {dlogits.data(), {p_.rows, p_.columns}, {stride_, 1}};
    EXPECT_TRUE(backward(b, nullptr).ok());
    return {logp.download(), lse.download(), entropy.download(), dlogits.download()};
  }

  void expect_row(const Results& got, int64_t t) const {
    const auto at = [&](int64_t v) {
      return static_cast<double>(logits_[size(t * p_.columns + v)]);
    };
    const double tau = p_.temperature, n = static_cast<double>(p_.columns);
    double sum = 0, entropy = 0;
    for (int64_t v = 0; v < p_.columns; ++v) sum += std::exp(at(v) / tau);
    const double lse = std::log(sum), scale = 40 + std::abs(lse);
    for (int64_t v = 0; v < p_.columns; ++v)
      entropy -= std::exp(at(v) / tau - lse) * (at(v) / tau - lse);
    const int64_t y = targets_[size(t)];
    EXPECT_TRUE(is_close<float>(got.lse[size(t)], lse, scale, n));
    EXPECT_TRUE(is_close<float>(got.logp[size(t)], at(y) / tau - lse, scale, n));
    EXPECT_TRUE(!p_.entropy || is_close<float>(got.entropy[size(t)], entropy, scale, n));
    const double g = dlogp_[size(t)], h = p_.entropy ? dentropy_[size(t)] : 0;
    for (int64_t v = 0; v < p_.columns; ++v) {
      const double logp = at(v) / tau - lse, p = std::exp(logp);
      const double want = ((v == y ? g : 0) - p * (g + h * (logp + entropy))) / tau;
      const double most =
          ((v == y ? 1 : 0) + p * scale) * (std::abs(g) + scale * std::abs(h)) / tau;
      ASSERT_TRUE(
          is_close<Elem>(static_cast<double>(got.dlogits[size(t * stride_ + v)]), want, most, n))
          << "row " << t << ", column " << v;
    }
  }
  void expect_ignored(const Results& got, int64_t t) const {
    EXPECT_EQ(got.logp[size(t)], 0.0f);
    EXPECT_EQ(got.lse[size(t)], 0.0f);
    EXPECT_EQ(got.entropy[size(t)], p_.entropy ? 0.0f : kUnset);
    for (int64_t v = 0; v < p_.columns; ++v)
      ASSERT_EQ(static_cast<float>(got.dlogits[size(t * stride_ + v)]), 0.0f);
  }

  Problem p_;
  int64_t stride_ = 0;
  std::vector<Elem> logits_;
  std::vector<int64_t> targets_;
  std::vector<float> dlogp_, dentropy_;
};
using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(LogProb, Policies);

TYPED_TEST(LogProb, IsRightInEveryLayout) {
  for (const Problem& problem : kProblems) {
    SCOPED_TRACE(testing::Message()
                 << "V " << problem.columns << " temperature " << problem.temperature << " pad "
                 << problem.pad << " shift " << problem.shift);
    this->make(problem);
    const auto got = this->run();
    for (int64_t t = 0; t < problem.rows; ++t) {
      if (this->targets_[this->size(t)] == -100)
        this->expect_ignored(got, t);
      else
        this->expect_row(got, t);
      for (int64_t v = problem.columns; v < this->stride_; ++v)
        ASSERT_EQ(static_cast<float>(got.dlogits[this->size(t * this->stride_ + v)]), kUnset);
    }
  }
}

// A row's bits do not depend on how many others there are: neither does the launch shape.
TYPED_TEST(LogProb, HasTheSameBitsInEveryBatch) {
  for (const int64_t columns : {40, 20001, 150001}) {
    this->make({.rows = 4, .columns = columns});
    const auto batch = this->run();
    this->p_.rows = 1;
    const auto alone = this->run();
    EXPECT_EQ(alone.logp[0], batch.logp[0]);
    EXPECT_EQ(alone.entropy[0], batch.entropy[0]);
    for (int64_t v = 0; v < columns; ++v)
      ASSERT_EQ(static_cast<float>(alone.dlogits[this->size(v)]),
                static_cast<float>(batch.dlogits[this->size(v)]));
  }
}

class LogProbArguments : public testing::Test {
 protected:
  float x_[6] = {}, row_[2] = {};
  int64_t target_[2] = {};
  Forward<F32> forward_;
  Backward<F32> backward_;

  void SetUp() override {
    forward_.logits = view(static_cast<const float*>(x_), 2, 3);
    forward_.target = view(static_cast<const int64_t*>(target_), 2);
    forward_.logp = forward_.lse = view(row_, 2);
    backward_.logits = forward_.logits;
    backward_.target = forward_.target;
    backward_.lse = backward_.dlogp = view(static_cast<const float*>(row_), 2);
    backward_.dlogits = view(x_, 2, 3);
  }
  template <class Args>
  static void expect_refused(const Args& args, const std::string& reason) {
    const Status status = [&] {
      if constexpr (requires { args.dlogits; })
        return backward(args, nullptr);
      else
        return forward(args, nullptr);
    }();
    EXPECT_EQ(status.code, Status::kInvalidArgument);
    EXPECT_NE(std::string(status.reason).find(reason), std::string::npos) << status.reason;
  }
};

TEST_F(LogProbArguments, TemperatureIsFiniteAndAboveZero) {
  for (const float bad : {0.0f, -1.0f, INFINITY, NAN, 1e-39f}) {
    forward_.temperature = backward_.temperature = bad;
    expect_refused(forward_, "temperature");
    expect_refused(backward_, "temperature");
  }
}

TEST_F(LogProbArguments, GradientOfTheEntropyTakesTheEntropy) {
  backward_.dentropy = backward_.dlogp;
  expect_refused(backward_, "takes the entropy");
  backward_.entropy = view(static_cast<const float*>(row_), 1);
  expect_refused(backward_, "entropy must be [T]");
}

TEST_F(LogProbArguments, ShapesAndMemory) {
  auto f = forward_;
  f.logits.stride[0] = 2;
  expect_refused(f, "logits");
  f = forward_;
  f.target.shape[0] = 1;
  expect_refused(f, "target");
  f = forward_;
  f.logp = {};
  expect_refused(f, "logp");
  f = forward_;
  f.entropy = view(row_, 1);
  expect_refused(f, "entropy");
  auto b = backward_;
  b.dlogits.shape[1] = 2;
  expect_refused(b, "dlogits");
  b = backward_;
  b.dlogp.data = nullptr;
  expect_refused(b, "dlogp");
}

}  // namespace
}  // namespace tigon::log_prob
