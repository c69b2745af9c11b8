// SPDX-License-Identifier: Apache-2.0
// log_prob: a row has the same bits in every batch, and its gradient wherever it goes; what the
// launchers refuse.
#include "kernels/log_prob/log_prob.h"

#include "kernels/tests/device_array.h"

namespace tigon::log_prob {
namespace {

using namespace testing_support;

constexpr float kUnset = -7.0f;

struct Layout {
  int64_t pad = 0, shift = 0;  // elements after each row of dlogits and before its first
};

template <class P>
class LogProb : public testing::Test {
 protected:
  using Elem = typename P::Elem;
  using Floats = DeviceArray<float>;

  void make(int64_t rows, int64_t columns) {
    rows_ = rows;
    columns_ = columns;
    logits_ = random_values<Elem>(size(rows * columns), 3.0f, 1);
    targets_ = random_targets(rows, columns, -100);
    dlogp_ = random_values<float>(size(rows), 1.0f, 2);
    dentropy_ = random_values<float>(size(rows), 1.0f, 3);
  }
  static size_t size(int64_t n) { return static_cast<size_t>(n); }

  struct Results {
    std::vector<float> logp, lse, entropy;
    std::vector<Elem> dlogits;  // its rows, and what lies between them
  };
  // Forward, and backward on what it saved.
  Results run(const Layout& layout = {}) {
    const int64_t stride = columns_ + layout.pad;
    const DeviceArray<Elem> logits(logits_);
    const DeviceArray<int64_t> target(targets_);
    const std::vector<float> unset(size(rows_), kUnset);
    const Floats logp(unset), lse(unset), entropy(unset), dlogp(dlogp_), dentropy(dentropy_);
    const auto row = [&](const Floats& array) { return view(array.data(), rows_); };
    const auto given = [&](const Floats& array) { return view<const float>(array.data(), rows_); };

    Forward<P> f;
    f.logits = view<const Elem>(logits.data(), rows_, columns_);
    f.target = view<const int64_t>(target.data(), rows_);
    f.logp = row(logp);
    f.lse = row(lse);
    f.entropy = row(entropy);
    EXPECT_TRUE(forward(f, nullptr).ok());

    const std::vector<Elem> gaps(size(rows_ * stride), Elem(kUnset));
    const DeviceArray<Elem> dlogits(gaps, layout.shift);
    Backward<P> b;
    b.logits = f.logits;
    b.target = f.target;
    b.lse = given(lse);
    b.dlogp = given(dlogp);
    b.dentropy = given(dentropy);
    b.entropy = given(entropy);
    b.dlogits = {dlogits.data(), {rows_, columns_}, {stride, 1}};
    EXPECT_TRUE(backward(b, nullptr).ok());
    return {logp.download(), lse.download(), entropy.download(), dlogits.download()};
  }
  // What dlogits is in this layout if its rows are those of a packed one.
  std::vector<Elem> laid_out(const std::vector<Elem>& packed, const Layout& layout) const {
    std::vector<Elem> all;
    for (int64_t t = 0; t < rows_; ++t) {
      const auto row = packed.begin() + t * columns_;
      all.insert(all.end(), row, row + columns_);
      all.insert(all.end(), size(layout.pad), Elem(kUnset));
    }
    return all;
  }

  int64_t rows_ = 0, columns_ = 0;
  std::vector<Elem> logits_;
  std::vector<int64_t> targets_;
  std::vector<float> dlogp_, dentropy_;
};
using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(LogProb, Policies);

// A row's bits do not depend on how many others there are: neither does the launch shape.
TYPED_TEST(LogProb, HasTheSameBitsInEveryBatch) {
  for (const int64_t columns : {40, 20001, 150001}) {
    this->make(4, columns);
    auto batch = this->run();
    this->rows_ = 1;
    const auto alone = this->run();
    EXPECT_EQ(alone.logp[0], batch.logp[0]);
    EXPECT_EQ(alone.entropy[0], batch.entropy[0]);
    batch.dlogits.resize(this->size(columns));
    EXPECT_TRUE(same_bits(alone.dlogits, batch.dlogits)) << "V " << columns;
  }
}

// Rows of dlogits aligned as those of logits are, otherwise from row to row, otherwise everywhere;
// rows that a small block has, a large one, and a cluster of blocks.
TYPED_TEST(LogProb, GradientHasTheSameBitsInEveryLayout) {
  for (const int64_t columns : {1003, 20001, 150001}) {
    this->make(4, columns);
    const auto packed = this->run();
    for (const Layout& layout : {Layout{8, 0}, Layout{5, 1}, Layout{0, 3}}) {
      const auto got = this->run(layout);
      EXPECT_TRUE(same_bits(got.dlogits, this->laid_out(packed.dlogits, layout)))
          << "V " << columns << " pad " << layout.pad << " shift " << layout.shift;
    }
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
