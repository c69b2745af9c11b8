// SPDX-License-Identifier: Apache-2.0
// divergence: the bits of gradients in layouts that the contract's cases do not reach, equal rows,
// rows far apart, and what its launchers refuse.
#include "kernels/divergence/divergence.h"

#include "kernels/tests/device_array.h"

namespace tigon::divergence {
namespace {

using namespace testing_support;

struct Problem {
  int64_t rows = 3, columns = 40;
  Kind kind = Kind::kForwardKl;
  float beta = 0.5f, temperature = 1.0f;
  int64_t pad = 0, shift = 0;  // elements after each row of dlogits and before its first
};
// A block of 128 threads, one of 512, two, four and eight that share a row; dlogits aligned as
// logits are, otherwise from row to row, and otherwise everywhere.
const Problem kProblems[] = {
    {.columns = 7, .kind = Kind::kJsd, .temperature = 0.25f, .shift = 1},
    {.columns = 1003, .kind = Kind::kReverseKl, .pad = 1},
    {.columns = 1003, .kind = Kind::kJsd, .beta = 0.1f, .pad = 8},
    {.columns = 4099, .temperature = 2.0f, .shift = 3},
    {.columns = 20001, .kind = Kind::kJsd, .beta = 0.9f, .pad = 5, .shift = 1},
    {.columns = 70001, .kind = Kind::kReverseKl, .shift = 1},
    {.columns = 150001, .kind = Kind::kJsd, .pad = 3},
    {.columns = 300001, .shift = 2},
};

template <class P>
class Divergence : public testing::Test {
 protected:
  using Elem = typename P::Elem;
  using Floats = DeviceArray<float>;

  void make(const Problem& problem) {
    p_ = problem;
    student_ = random_values<Elem>(size(p_.rows * p_.columns), 2 * p_.temperature, 1);
    teacher_ = random_values<Elem>(size(p_.rows * p_.columns), 2 * p_.temperature, 2);
    dloss_ = random_values<float>(size(p_.rows), 1.0f, 3);
  }
  static size_t size(int64_t n) { return static_cast<size_t>(n); }

  struct Results {
    std::vector<float> loss;
    std::vector<Elem> dlogits;
  };
  // Forward, and backward on what it saved.
  Results run() {
    const DeviceArray<Elem> student(student_), teacher(teacher_);
    const Floats unset(std::vector<float>(size(p_.rows), kUnset));
    const Floats loss(unset.download()), lse(unset.download()), teacher_lse(unset.download()),
        slope(unset.download()), dloss(dloss_);
    const auto given = [&](const Floats& array) {
      return view(static_cast<const float*>(array.data()), p_.rows);
    };
    const Options options = {.kind = p_.kind, .beta = p_.beta, .temperature = p_.temperature};

    Forward<P> f;
    static_cast<Options&>(f) = options;
    f.logits = view(static_cast<const Elem*>(student.data()), p_.rows, p_.columns);
    f.teacher = view(static_cast<const Elem*>(teacher.data()), p_.rows, p_.columns);
    f.loss = view(loss.data(), p_.rows);
    f.lse = view(lse.data(), p_.rows);
    f.teacher_lse = view(teacher_lse.data(), p_.rows);
    f.slope = view(slope.data(), p_.rows);
    EXPECT_TRUE(forward(f, nullptr).ok());

    const int64_t stride = p_.columns + p_.pad;
    const DeviceArray<Elem> dlogits(std::vector<Elem>(size(p_.rows * stride), Elem(kUnset)),
                                    p_.shift);
    Backward<P> b;
    static_cast<Options&>(b) = options;
    b.logits = f.logits;
    b.teacher = f.teacher;
    b.lse = given(lse);
    b.teacher_lse = given(teacher_lse);
    b.slope = given(slope);
    b.dloss = given(dloss);
    b.dlogits = {dlogits.data(), {p_.rows, p_.columns}, {stride, 1}};
    EXPECT_TRUE(backward(b, nullptr).ok());
    return {loss.download(), dlogits.download()};
  }

  static constexpr float kUnset = -7.0f;
  Problem p_;
  std::vector<Elem> student_, teacher_;
  std::vector<float> dloss_;
};
using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(Divergence, Policies);

// Nothing is added up in backward, so vectors and single elements give the same bits.
TYPED_TEST(Divergence, GradientHasTheSameBitsInEveryLayout) {
  for (const Problem& p : kProblems) {
    SCOPED_TRACE(testing::Message() << "V " << p.columns << " kind " << static_cast<int>(p.kind)
                                    << " pad " << p.pad << " shift " << p.shift);
    this->make(p);
    const auto got = this->run();
    this->p_.pad = this->p_.shift = 0;
    const auto packed = this->run();
    const int64_t stride = p.columns + p.pad;
    for (int64_t t = 0; t < p.rows; ++t) {
      for (int64_t v = 0; v < p.columns; ++v)
        ASSERT_EQ(static_cast<float>(got.dlogits[this->size(t * stride + v)]),
                  static_cast<float>(packed.dlogits[this->size(t * p.columns + v)]))
            << "row " << t << ", column " << v;
      for (int64_t v = p.columns; v < stride; ++v)
        ASSERT_EQ(static_cast<float>(got.dlogits[this->size(t * stride + v)]), this->kUnset);
    }
  }
}

TYPED_TEST(Divergence, OfEqualRowsIsExactlyZero) {
  for (const Kind kind : {Kind::kForwardKl, Kind::kReverseKl, Kind::kJsd})
    for (const int64_t columns : {9, 1003, 40001}) {
      this->make({.columns = columns, .kind = kind, .beta = 0.3f, .temperature = 0.7f});
      this->teacher_ = this->student_;
      const auto got = this->run();
      for (const float loss : got.loss) EXPECT_EQ(loss, 0.0f);
      for (const auto d : got.dlogits) ASSERT_EQ(static_cast<float>(d), 0.0f);
    }
}

// jsd takes a ratio of NaN for a far one; the loss must not.
TYPED_TEST(Divergence, OfANaNInEitherRowIsNaN) {
  for (const Kind kind : {Kind::kForwardKl, Kind::kReverseKl, Kind::kJsd})
    for (const bool of_teacher : {false, true}) {
      SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind));
      this->make({.columns = 1003, .kind = kind});
      (of_teacher ? this->teacher_ : this->student_)[5] = typename TypeParam::Elem(NAN);
      const auto got = this->run();
      EXPECT_TRUE(std::isnan(got.loss[0]));
      EXPECT_FALSE(std::isnan(got.loss[1]));
    }
}

// Down to the least probability of the student that is not flushed to 0, at a token of which the
// teacher is sure. By hand, of beta 1/2 and over q: log(q / m) / 2 - slope, with m = (p + q) / 2.
TYPED_TEST(Divergence, GradientKnowsHowFarTheTeacherIs) {
  for (const float margin : {70.0f, 80.0f, 82.0f, 85.0f, 86.0f}) {
    this->make({.rows = 1, .columns = 2, .kind = Kind::kJsd});
    this->student_ = {typename TypeParam::Elem(0.0f), typename TypeParam::Elem(-margin)};
    this->teacher_ = {this->student_[1], this->student_[0]};
    this->dloss_ = {std::exp(margin)};  // 1 / q
    const double slope = std::log(2.0) / 2, log_q = std::log(2.0) - margin;
    const double want = log_q / 2 - slope;
    EXPECT_NEAR(static_cast<float>(this->run().dlogits[1]), want, -0.004 * want)
        << "margin " << margin;
  }
}

// A logit times log2(e) and the sum of it with log2 of 1 are rounded: one way or the other, by more
// than any power of 2 can take.
TYPED_TEST(Divergence, OfLargeLogitsIsFinite) {
  const double largest = std::is_same_v<TypeParam, F16> ? 6e4 : 1e35;
  for (const Kind kind : {Kind::kForwardKl, Kind::kReverseKl, Kind::kJsd})
    for (const int64_t columns : {1, 40, 1003}) {
      SCOPED_TRACE(testing::Message() << "V " << columns << " kind " << static_cast<int>(kind));
      this->make({.rows = 67, .columns = columns, .kind = kind});
      for (int64_t i = 0; i < 67 * columns; ++i) {
        const double row = static_cast<double>(i / columns), of_row = std::cos(row) * largest;
        this->student_[this->size(i)] = typename TypeParam::Elem(static_cast<float>(of_row));
        this->teacher_[this->size(i)] = typename TypeParam::Elem(static_cast<float>(-of_row));
      }
      const auto got = this->run();
      for (const float loss : got.loss) ASSERT_TRUE(std::isfinite(loss));
      for (const auto d : got.dlogits) ASSERT_TRUE(std::isfinite(static_cast<float>(d)));
    }
}

// A row's bits do not depend on how many others there are: neither does the launch shape.
TYPED_TEST(Divergence, HasTheSameBitsInEveryBatch) {
  for (const int64_t columns : {40, 20001, 150001}) {
    this->make({.rows = 4, .columns = columns, .kind = Kind::kJsd});
    const auto batch = this->run();
    this->p_.rows = 1;
    const auto alone = this->run();
    EXPECT_EQ(alone.loss[0], batch.loss[0]);
    for (int64_t v = 0; v < columns; ++v)
      ASSERT_EQ(static_cast<float>(alone.dlogits[this->size(v)]),
                static_cast<float>(batch.dlogits[this->size(v)]));
  }
}

class DivergenceArguments : public testing::Test {
 protected:
  float x_[6] = {}, row_[2] = {};
  int64_t target_[2] = {};
  Forward<F32> forward_;
  Backward<F32> backward_;

  void SetUp() override {
    forward_.logits = forward_.teacher = view(static_cast<const float*>(x_), 2, 3);
    forward_.loss = forward_.lse = forward_.teacher_lse = forward_.slope = view(row_, 2);
    backward_.logits = backward_.teacher = forward_.logits;
    backward_.lse = backward_.teacher_lse = backward_.slope = backward_.dloss =
        view(static_cast<const float*>(row_), 2);
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

TEST_F(DivergenceArguments, Options) {
  for (const float bad : {0.0f, -1.0f, INFINITY, NAN, 1e-39f}) {
    forward_.temperature = backward_.temperature = bad;
    expect_refused(forward_, "temperature");
    expect_refused(backward_, "temperature");
  }
  forward_.temperature = backward_.temperature = 1.0f;
  for (const float bad : {-0.01f, 1.01f, NAN}) {
    forward_.beta = backward_.beta = bad;
    expect_refused(forward_, "beta");
    expect_refused(backward_, "beta");
  }
  forward_.beta = backward_.beta = 0.5f;
  for (const int bad : {-1, 3}) {
    forward_.kind = backward_.kind = static_cast<Kind>(bad);
    expect_refused(forward_, "kind");
    expect_refused(backward_, "kind");
  }
}

TEST_F(DivergenceArguments, ShapesAndMemory) {
  auto f = forward_;
  f.teacher.shape[1] = 2;  // pad the smaller vocabulary
  expect_refused(f, "teacher");
  f = forward_;
  f.target = view(static_cast<const int64_t*>(target_), 1);
  expect_refused(f, "target");
  f = forward_;
  f.loss = {};
  expect_refused(f, "loss");
  f = forward_;
  f.slope = {};
  expect_refused(f, "slope");
  auto b = backward_;
  b.dlogits.shape[1] = 2;
  expect_refused(b, "dlogits");
  b = backward_;
  b.dloss.data = nullptr;
  expect_refused(b, "dloss");
}

}  // namespace
}  // namespace tigon::divergence
