// cross_entropy against plain loops in double.
#include "kernels/cross_entropy/cross_entropy.h"

#include "kernels/tests/loss_reference.h"

namespace tigon::cross_entropy {
namespace {

using namespace testing_support;

struct Problem {
  LossOptions options = {};
  int64_t rows = 3, columns = 40;
  int64_t padding = 0, offset = 0;  // elements after each row and before the first
  bool upstream = true;
  bool weighted = false, results = false;  // class weights; what is returned beside the loss
};

template <class P>
class CrossEntropy : public testing::Test {
 protected:
  using Elem = typename P::Elem;

  void make(const Problem& problem, float scale = 3.0f) {
    p_ = problem;
    stride_ = p_.columns + p_.padding;
    logits_ = random_values<Elem>(static_cast<size_t>(p_.rows * stride_), scale, 1);
    targets_ = random_targets(p_.rows, p_.columns, p_.options.ignore_index);
    upstream_ = random_values<float>(static_cast<size_t>(losses()), 1.0f, 2);
    weights_ = random_values<float>(static_cast<size_t>(p_.columns), 0.2f, 3);
    for (float& w : weights_) w += 1.5f;
  }
  int64_t losses() const { return p_.options.reduction == Reduction::kNone ? p_.rows : 1; }
  Elem& logit(int64_t row, int64_t column) {
    return logits_[static_cast<size_t>(row * stride_ + column)];
  }

  // Runs all passes and compares each with the reference.
  void expect_right() {
    SCOPED_TRACE(testing::Message() << "T " << p_.rows << " V " << p_.columns << " reduction "
                                    << static_cast<int>(p_.options.reduction) << " smoothing "
                                    << p_.options.label_smoothing << " z " << p_.options.z_loss
                                    << " softcap " << p_.options.softcap);
    const Outputs forward_only = run_forward(), both = run_forward_backward();
    const std::vector<Elem> gradient = run_backward(both.lse);
    if (testing::Test::HasFatalFailure()) return;
    const std::vector<RowReference> rows = reference();
    compare_losses(forward_only, rows);
    compare_losses(both, rows);
    compare_gradient(both.logits, rows);
    compare_gradient(gradient, rows);
  }

  struct Outputs {
    std::vector<float> loss, lse, z_part, accuracy, entropy;
    std::vector<Elem> logits;
  };

  // Memory of class weights and of what is returned beside the loss.
  struct Extras {
    DeviceArray<float> weights, z_part, accuracy, entropy;
  };
  Extras extras() const {
    const std::vector<float> poison(static_cast<size_t>(losses()), -1.0f);
    return {DeviceArray<float>(weights_), DeviceArray<float>(poison), DeviceArray<float>(poison),
            DeviceArray<float>(poison)};
  }
  template <class Args>
  void bind(Args& a, const Extras& e) const {
    if (p_.weighted) a.class_weight = view(static_cast<const float*>(e.weights.data()), p_.columns);
    if constexpr (requires { a.entropy; }) {
      if (!p_.results) return;
      a.z_part = view(e.z_part.data(), losses());
      a.accuracy = view(e.accuracy.data(), losses());
      a.entropy = view(e.entropy.data(), losses());
    }
  }

  template <class Args>
  void bind(Args& a, const DeviceArray<Elem>& logits, const DeviceArray<int64_t>& target) {
    static_cast<LossOptions&>(a) = p_.options;
    a.logits = {logits.data(), {p_.rows, p_.columns}, {stride_, 1}};
    a.target = view(static_cast<const int64_t*>(target.data()), p_.rows);
  }

  Outputs run_forward() {
    const DeviceArray<Elem> logits(logits_, p_.offset);
    const DeviceArray<int64_t> target(targets_);
    const DeviceArray<float> loss(std::vector<float>(static_cast<size_t>(losses()), -1.0f));
    const DeviceArray<float> lse(std::vector<float>(static_cast<size_t>(p_.rows), -1.0f));
    Forward<P> a;
    bind(a, logits, target);
    a.loss = view(loss.data(), losses());
    a.lse = view(lse.data(), p_.rows);
    const Extras e = extras();
    bind(a, e);
    launch(a, forward<P>);
    return {loss.download(),       lse.download(),       e.z_part.download(),
            e.accuracy.download(), e.entropy.download(), logits.download()};
  }

  Outputs run_forward_backward() {
    const DeviceArray<Elem> logits(logits_, p_.offset);
    const DeviceArray<int64_t> target(targets_);
    const DeviceArray<float> dloss(upstream_);
    const DeviceArray<float> loss(std::vector<float>(static_cast<size_t>(losses()), -1.0f));
    const DeviceArray<float> lse(std::vector<float>(static_cast<size_t>(p_.rows), -1.0f));
    ForwardBackward<P> a;
    bind(a, logits, target);
    if (p_.upstream) a.dloss = view(static_cast<const float*>(dloss.data()), losses());
    a.loss = view(loss.data(), losses());
    a.lse = view(lse.data(), p_.rows);
    const Extras e = extras();
    bind(a, e);
    launch(a, forward_backward<P>);
    return {loss.download(),       lse.download(),       e.z_part.download(),
            e.accuracy.download(), e.entropy.download(), logits.download()};
  }

  std::vector<Elem> run_backward(const std::vector<float>& saved_lse) {
    const DeviceArray<Elem> logits(logits_, p_.offset);
    const DeviceArray<int64_t> target(targets_);
    const DeviceArray<float> dloss(upstream_), lse(saved_lse);
    Backward<P> a;
    bind(a, logits, target);
    if (p_.upstream) a.dloss = view(static_cast<const float*>(dloss.data()), losses());
    a.lse = view(static_cast<const float*>(lse.data()), p_.rows);
    const Extras e = extras();
    bind(a, e);
    launch(a, backward<P>);
    return logits.download();
  }

  std::vector<RowReference> reference() {
    std::vector<RowReference> rows;
    for (int64_t t = 0; t < p_.rows; ++t) {
      std::vector<double> x;
      for (int64_t v = 0; v < p_.columns; ++v) x.push_back(static_cast<double>(logit(t, v)));
      std::vector<double> weights;
      if (p_.weighted) weights.assign(weights_.begin(), weights_.end());
      const double z_share = share() > 0 ? row_share() / share() : 1;
      rows.push_back(
          row_reference(x, targets_[static_cast<size_t>(t)], p_.options, weights, z_share));
    }
    return rows;
  }

  // Of a row in the loss.
  double share() const {
    if (p_.options.reduction != Reduction::kMean || !p_.weighted) return row_share();
    double sum = 0;
    for (const int64_t y : targets_)
      if (y != p_.options.ignore_index && y >= 0 && y < p_.columns)
        sum += static_cast<double>(weights_[static_cast<size_t>(y)]);
    return sum > 0 ? 1 / sum : 0;
  }
  // Of a row in what has no class weight.
  double row_share() const {
    if (p_.options.reduction != Reduction::kMean) return 1;
    const auto counted =
        static_cast<double>(p_.rows) -
        static_cast<double>(std::count(targets_.begin(), targets_.end(), p_.options.ignore_index));
    return counted > 0 ? 1 / counted : 0;
  }

  void compare_losses(const Outputs& got, const std::vector<RowReference>& rows) {
    const auto n = static_cast<double>(p_.columns + p_.rows);
    double sum = 0, size = 0;
    for (size_t t = 0; t < rows.size(); ++t) {
      sum += share() * rows[t].loss;
      size += share() * rows[t].loss_size;
      EXPECT_TRUE(is_close<float>(got.lse[t], rows[t].lse, rows[t].lse_size, n))
          << "lse of row " << t << ": " << got.lse[t] << ", want " << rows[t].lse;
      if (p_.options.reduction == Reduction::kNone) {
        EXPECT_TRUE(is_close<float>(got.loss[t], rows[t].loss, rows[t].loss_size, n))
            << "loss of row " << t << ": " << got.loss[t] << ", want " << rows[t].loss;
      }
    }
    if (p_.options.reduction != Reduction::kNone) {
      EXPECT_TRUE(is_close<float>(got.loss[0], sum, size, n))
          << "loss " << got.loss[0] << ", want " << sum;
    }
    if (p_.results) compare_results(got, rows);
  }

  void compare_results(const Outputs& got, const std::vector<RowReference>& rows) {
    const bool none = p_.options.reduction == Reduction::kNone;
    const auto n = static_cast<double>(p_.columns + p_.rows);
    double z = 0, accuracy = 0, entropy = 0, z_size = 0, entropy_size = 0;
    for (size_t t = 0; t < rows.size(); ++t) {
      if (none) z = accuracy = entropy = z_size = entropy_size = 0;
      z += row_share() * rows[t].z_part;
      z_size +=
          row_share() * p_.options.z_loss * rows[t].lse_size * 4 * (1 + std::abs(rows[t].lse));
      accuracy += row_share() * rows[t].accuracy;
      entropy += row_share() * rows[t].entropy;
      entropy_size += row_share() * rows[t].entropy_size;
      if (!none && t + 1 < rows.size()) continue;
      const size_t i = none ? t : 0;
      EXPECT_TRUE(is_close<float>(got.z_part[i], z, z_size, n))
          << "z_part " << got.z_part[i] << ", want " << z;
      EXPECT_TRUE(is_close<float>(got.accuracy[i], accuracy, accuracy, n))
          << "accuracy " << got.accuracy[i] << ", want " << accuracy;
      EXPECT_TRUE(is_close<float>(got.entropy[i], entropy, entropy_size, n))
          << "entropy " << got.entropy[i] << ", want " << entropy;
    }
  }

  void compare_gradient(const std::vector<Elem>& got, const std::vector<RowReference>& rows) {
    const auto n = static_cast<double>(p_.columns);
    for (int64_t t = 0; t < p_.rows; ++t) {
      const RowReference& row = rows[static_cast<size_t>(t)];
      const bool none = p_.options.reduction == Reduction::kNone;
      const double g = share() * (p_.upstream ? upstream_[none ? static_cast<size_t>(t) : 0] : 1.0);
      for (int64_t v = 0; v < stride_; ++v) {
        const auto value = static_cast<double>(got[static_cast<size_t>(t * stride_ + v)]);
        if (v >= p_.columns) {
          ASSERT_EQ(value, static_cast<double>(logit(t, v))) << "padding written in row " << t;
          continue;
        }
        const auto i = static_cast<size_t>(v);
        ASSERT_TRUE(
            is_close<Elem>(value, g * row.gradient[i], std::abs(g) * row.gradient_size[i], n))
            << "gradient of row " << t << " column " << v << ": " << value << ", want "
            << g * row.gradient[i];
      }
    }
  }

  Problem p_;
  int64_t stride_ = 0;
  std::vector<Elem> logits_;
  std::vector<int64_t> targets_;
  std::vector<float> upstream_, weights_;
};

using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(CrossEntropy, Policies);

TYPED_TEST(CrossEntropy, Options) {
  LossOptions plain, all{.label_smoothing = 0.1f, .z_loss = 1e-2f, .softcap = 5.0f};
  LossOptions smoothed{.label_smoothing = 0.2f}, z{.z_loss = 1e-2f}, capped{.softcap = 2.0f};
  LossOptions ignoring_a_class{.ignore_index = 3};
  for (LossOptions o : {plain, smoothed, z, capped, all, ignoring_a_class}) {
    for (const Reduction r : {Reduction::kMean, Reduction::kSum, Reduction::kNone}) {
      o.reduction = r;
      for (const bool upstream : {true, false}) {
        this->make({.options = o, .upstream = upstream});
        this->expect_right();
      }
    }
  }
}

TYPED_TEST(CrossEntropy, ClassWeightsAndResults) {
  LossOptions plain, all{.label_smoothing = 0.1f, .z_loss = 1e-2f, .softcap = 5.0f};
  LossOptions smoothed{.label_smoothing = 0.2f};
  for (LossOptions o : {plain, smoothed, all}) {
    for (const Reduction r : {Reduction::kMean, Reduction::kSum, Reduction::kNone}) {
      o.reduction = r;
      for (const bool results : {false, true}) {
        this->make({.options = o, .padding = 3, .weighted = true, .results = results});
        this->expect_right();
      }
      this->make({.options = o, .results = true});
      this->targets_[0] = 0;
      this->logit(0, 0) = this->logit(0, 7) = typename TypeParam::Elem(20.0f);
      this->expect_right();  // the first of two equal logits
      this->targets_[0] = 7;
      this->expect_right();
    }
  }
}

// The same where a cluster of blocks shares a row.
TYPED_TEST(CrossEntropy, ClassWeightsAndResultsOfLongRows) {
  const int64_t columns = static_cast<int64_t>(200001 / sizeof(typename TypeParam::Elem));
  this->make({.options = {.label_smoothing = 0.1f, .z_loss = 1e-2f},
              .rows = 2,
              .columns = columns,
              .offset = 1,
              .weighted = true,
              .results = true});
  this->targets_ = {columns - 1, columns / 2};
  this->expect_right();
}

TYPED_TEST(CrossEntropy, SizesAndAlignments) {
  for (const int64_t columns : {1, 2, 7, 8, 9, 33, 1031, 4099}) {
    for (const int64_t offset : {0, 1, 5}) {
      this->make({.rows = 4, .columns = columns, .padding = offset * 3, .offset = offset});
      this->expect_right();
    }
  }
}

// Rows that a cluster of blocks shares, kept in shared memory as a whole and in part.
TYPED_TEST(CrossEntropy, LongRows) {
  const int64_t most = static_cast<int64_t>(8 * 80000 / sizeof(typename TypeParam::Elem));
  for (const int64_t columns : {most / 16, most / 6 + 1, most / 2 + 3, most + 5000}) {
    for (const float softcap : {0.0f, 20.0f}) {
      this->make({.options = {.softcap = softcap}, .rows = 2, .columns = columns, .offset = 1});
      this->targets_ = {columns - 1, columns / 2};
      this->expect_right();
    }
  }
}

// Rows that a small block holds, a large one or several.
TYPED_TEST(CrossEntropy, WideRowsOneAfterTheOther) {
  const int64_t least = static_cast<int64_t>(50000 / sizeof(typename TypeParam::Elem));
  for (const int64_t columns :
       {least, 2 * least + 5, 4 * least + 3, 7 * least + 1, 13 * least + 5}) {
    for (const float smoothing : {0.0f, 0.1f}) {
      this->make({.options = {.label_smoothing = smoothing, .reduction = Reduction::kNone},
                  .rows = 11,
                  .columns = columns,
                  .padding = 1,
                  .offset = 1});
      this->targets_ = {0,    -100, columns - 1, columns,     5,   columns / 2,
                        -100, -100, -100,        columns - 9, -100};
      this->expect_right();
    }
  }
}

TYPED_TEST(CrossEntropy, InfiniteLogits) {
  this->make({.options = {.reduction = Reduction::kNone}, .rows = 6, .columns = 3000});
  this->targets_ = {2999, 0, 5, 5, 5, 5};
  using Elem = typename TypeParam::Elem;
  for (int64_t v = 0; v < 2500; ++v) this->logit(0, v) = Elem(-kInfinity);  // the first blocks
  for (int64_t v = 1; v < 3000; ++v) this->logit(1, v) = Elem(-kInfinity);  // all but the target
  for (int64_t v = 0; v < 3000; ++v) this->logit(2, v) = Elem(-kInfinity);  // all
  this->logit(3, 77) = Elem(kInfinity);
  this->logit(4, 77) = Elem(kNaN);
  this->logit(5, 5) = Elem(-kInfinity);  // the target
  const auto rows = this->reference();
  const auto both = this->run_forward_backward(), alone = this->run_forward();
  EXPECT_EQ(alone.loss[0], both.loss[0]);
  for (const size_t t : {0, 1, 5}) {
    EXPECT_TRUE(is_close<float>(both.lse[t], rows[t].lse, rows[t].lse_size, 3000))
        << "row " << t << ": " << both.lse[t] << ", want " << rows[t].lse;
    EXPECT_TRUE(is_close<float>(both.loss[t], rows[t].loss, rows[t].loss_size, 3000))
        << "row " << t << ": " << both.loss[t] << ", want " << rows[t].loss;
  }
  EXPECT_EQ(both.lse[2], -kInfinity);
  for (const size_t t : {2, 3, 4}) EXPECT_TRUE(std::isnan(both.loss[t])) << t;
  for (const size_t t : {0, 1, 2, 3, 4}) {
    const auto gradient = static_cast<double>(both.logits[t * 3000 + 100]);
    EXPECT_EQ(std::isnan(gradient), t >= 2) << "row " << t << ": " << gradient;
  }
}

// Logits masked with the smallest finite number instead of -inf, the first blocks of them.
TYPED_TEST(CrossEntropy, SmallestLogits) {
  using Elem = typename TypeParam::Elem;
  const double lowest = dtype_of<Elem> == DType::kF16 ? -65504.0 : -3.3895313892515355e38;
  this->make({.rows = 3, .columns = 3000});
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t v = 0; v < 2990; ++v) this->logit(t, v) = Elem(lowest);
  this->targets_ = {2995, -100, 2999};
  this->expect_right();
}

TYPED_TEST(CrossEntropy, IgnoredRowsMayHoldAnything) {
  this->make({.rows = 5, .columns = 50});
  for (int64_t t : {1, 4})
    for (int64_t v = 0; v < 50; ++v)
      this->logit(t, v) = static_cast<typename TypeParam::Elem>(kNaN);
  this->expect_right();
}

TYPED_TEST(CrossEntropy, AllRowsIgnored) {
  for (const Reduction r : {Reduction::kMean, Reduction::kSum, Reduction::kNone}) {
    this->make({.options = {.reduction = r}, .rows = 3, .columns = 50});
    this->targets_.assign(3, -100);
    this->expect_right();
    EXPECT_EQ(this->run_forward().loss[0], 0.0f);
    for (const auto v : this->run_forward_backward().logits) EXPECT_EQ(static_cast<double>(v), 0.0);
  }
}

TYPED_TEST(CrossEntropy, InvalidTargetsAreNotIndices) {
  this->make({.options = {.reduction = Reduction::kNone}, .rows = 5, .columns = 50});
  this->targets_ = {50, -1, int64_t{1} << 40, std::numeric_limits<int64_t>::min(), 7};
  this->expect_right();
  this->make({.rows = 3, .columns = 50});
  this->targets_ = {50, -100, 7};
  this->expect_right();  // counts as a row of the mean
}

TYPED_TEST(CrossEntropy, NoRows) {
  for (const Reduction r : {Reduction::kMean, Reduction::kSum, Reduction::kNone}) {
    this->make({.options = {.reduction = r}, .rows = 0, .columns = 50});
    this->expect_right();
  }
}

// p of the target is 1 in bf16, its gradient p - 1 is not 0.
TYPED_TEST(CrossEntropy, ConfidentTarget) {
  this->make(
      {.options = {.reduction = Reduction::kSum}, .rows = 1, .columns = 1000, .upstream = false});
  this->targets_ = {500};
  for (int64_t v = 0; v < 1000; ++v)
    this->logit(0, v) = static_cast<typename TypeParam::Elem>(v == 500 ? 15.0 : 0.0);
  const double want = std::exp(15.0) / (std::exp(15.0) + 999) - 1;  // -3.05e-4
  const auto got = static_cast<double>(this->run_forward_backward().logits[500]);
  EXPECT_NEAR(got, want, 0.005 * std::abs(want));
}

TYPED_TEST(CrossEntropy, SumsLossesOfManyRows) {
  for (const Reduction r : {Reduction::kMean, Reduction::kSum}) {
    this->make({.options = {.reduction = r}, .rows = 1500, .columns = 5});
    this->expect_right();
  }
}

TYPED_TEST(CrossEntropy, RefusesBadArguments) {
  this->make({.rows = 2, .columns = 8});
  const DeviceArray<typename TypeParam::Elem> logits(this->logits_);
  const DeviceArray<int64_t> target(this->targets_);
  const DeviceArray<float> loss(std::vector<float>(2)), lse(std::vector<float>(2));
  Forward<TypeParam> good;
  this->bind(good, logits, target);
  good.loss = view(loss.data(), 1);
  good.lse = view(lse.data(), 2);
  const DeviceBuffer scratch(workspace(good));
  good.scratch = {scratch.data(), scratch.bytes()};
  ASSERT_TRUE(forward(good, nullptr).ok());
  const auto refused = [&](auto change) {
    auto bad = good;
    change(bad);
    return forward(bad, nullptr).code == Status::kInvalidArgument;
  };
  using A = Forward<TypeParam>;
  EXPECT_TRUE(refused([](A& a) { a.scratch.bytes -= 1; }));
  EXPECT_TRUE(refused([](A& a) { a.scratch.data = nullptr; }));
  EXPECT_TRUE(refused([](A& a) { a.target.shape[0] = 1; }));
  EXPECT_TRUE(refused([](A& a) { a.logits.stride[0] = 7; }));
  EXPECT_TRUE(refused([](A& a) { a.logits.stride[1] = 2; }));
  EXPECT_TRUE(refused([](A& a) { a.loss.shape[0] = 2; }));
  EXPECT_TRUE(refused([](A& a) { a.lse.data = nullptr; }));
  const float weights[7] = {};
  EXPECT_TRUE(refused([&](A& a) { a.class_weight = view(&weights[0], 7); }));
  EXPECT_TRUE(refused([&](A& a) { a.entropy = view(loss.data(), 2); }));
  EXPECT_TRUE(refused([](A& a) { a.label_smoothing = 1.5f; }));
  EXPECT_TRUE(refused([](A& a) { a.label_smoothing = std::nanf(""); }));
}

}  // namespace
}  // namespace tigon::cross_entropy
