// SPDX-License-Identifier: Apache-2.0
// cross_entropy against plain loops in double: options, sizes, special values, refusals.
#include "kernels/tests/cross_entropy_problem.h"

namespace tigon::cross_entropy {
namespace {

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
