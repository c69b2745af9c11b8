// SPDX-License-Identifier: Apache-2.0
// linear_log_prob against plain loops in double: chunks, gradients, the cases that others get
// wrong, refusals.
#include "kernels/tests/linear_log_prob_problem.h"

namespace tigon::linear_log_prob {
namespace {

TYPED_TEST_SUITE(LinearLogProb, Policies);

TYPED_TEST(LinearLogProb, RowsInOneChunkAndInSeveral) {
  for (const bool entropy : {true, false}) {
    for (const int64_t chunk : {100, 5, 1}) {
      this->make({.rows_per_chunk = chunk, .entropy = entropy});
      this->expect_right();
    }
  }
}

// V smaller than a chunk, a multiple of it and none.
TYPED_TEST(LinearLogProb, ColumnsInOneChunkAndInSeveral) {
  for (const bool entropy : {true, false}) {
    for (const int64_t chunk : {100, 50, 16, 8}) {
      this->make({.columns_per_chunk = chunk, .entropy = entropy});
      this->expect_right();
    }
  }
  this->make({.columns = 48, .columns_per_chunk = 16});
  this->expect_right();
}

TYPED_TEST(LinearLogProb, Sizes) {
  this->make({.rows = 300, .hidden = 9, .columns = 33, .rows_per_chunk = 130});
  this->expect_right();
  this->make({.rows = 1, .hidden = 3, .columns = 1});  // one token, log-probability 0
  this->expect_right();
  this->make({.rows = 1, .hidden = 3, .columns = 9, .columns_per_chunk = 8});
  this->expect_right();
  this->make({.rows = 2, .hidden = 3, .columns = 7000, .columns_per_chunk = 6500});
  this->expect_right();
}

TYPED_TEST(LinearLogProb, NoRows) {
  for (const int64_t columns : {0, 16}) {
    for (const Dw dw : {Dw::kElem, Dw::kFp32, Dw::kAccum}) {
      this->make({.rows = 0, .columns_per_chunk = columns, .bias = true, .dw = dw});
      this->expect_right();  // dw is 0
    }
  }
}

TYPED_TEST(LinearLogProb, AllRowsIgnored) {
  for (const int64_t columns : {0, 16}) {
    this->make({.rows_per_chunk = 4, .columns_per_chunk = columns, .bias = true});
    this->targets_.assign(this->targets_.size(), -100);
    this->expect_right();
  }
}

TYPED_TEST(LinearLogProb, ExtremeTemperatures) {
  for (const float temperature : {0.01f, 100.0f}) {
    for (const int64_t columns : {0, 16}) {
      this->make({.temperature = temperature, .columns_per_chunk = columns, .bias = true});
      this->expect_right();
    }
  }
}

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

// Classes that a bias of -inf forbids: a whole chunk of columns, too, the first that is added.
TYPED_TEST(LinearLogProb, MaskedByTheBias) {
  using Elem = typename TypeParam::Elem;
  for (const int64_t columns : {0, 8}) {
    this->make({.columns_per_chunk = columns, .bias = true});
    for (size_t v = 0; v < this->bias_.size(); ++v)
      if (v % 5 == 1 || v > 20) this->bias_[v] = Elem(-INFINITY);
    for (auto& y : this->targets_) y = y == -100 ? y : 2;
    this->expect_right();
    this->targets_[0] = 30;  // masked
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
      this->make({.columns_per_chunk = columns, .dw = Dw::kNone});
      this->targets_[0] = bad;
      const auto got = this->run();
      EXPECT_TRUE(std::isnan(got.logp[0]));
      EXPECT_TRUE(std::isfinite(got.lse[0]));
      EXPECT_TRUE(std::isnan(static_cast<float>(got.dx[0])));
      EXPECT_TRUE(std::isfinite(static_cast<float>(got.dx[24 * 2])));
    }
  }
}

TYPED_TEST(LinearLogProb, GradientsLeftOut) {
  for (const int64_t chunk : {100, 5}) {
    for (const bool dx : {true, false}) {
      this->make({.rows_per_chunk = chunk, .dx = dx, .dw = dx ? Dw::kNone : Dw::kElem});
      this->expect_right();
    }
  }
  this->make({.dx = false, .dw = Dw::kNone});
  this->expect_right();
}

TYPED_TEST(LinearLogProb, WhereDwGoes) {
  for (const Dw dw : {Dw::kFp32, Dw::kAccum}) {
    for (const int64_t chunk : {100, 5}) {
      this->make({.rows_per_chunk = chunk, .bias = true, .dw = dw});
      this->expect_right();
    }
    this->make({.columns_per_chunk = 16, .bias = true, .dw = dw});
    this->expect_right();
  }
}

TYPED_TEST(LinearLogProb, ValidRowsAlone) {
  for (const int64_t columns : {0, 16}) {
    for (const int64_t most : {100, 13, 9}) {  // of 13 rows 9 are valid
      this->make({.rows_per_chunk = 4,
                  .columns_per_chunk = columns,
                  .max_valid_rows = most,
                  .bias = true});
      this->expect_right();
    }
    this->make({.columns_per_chunk = columns, .max_valid_rows = 0});
    this->targets_.assign(this->targets_.size(), -100);
    this->expect_right();
  }
}

TYPED_TEST(LinearLogProb, MoreValidRowsThanPromised) {
  this->make({.max_valid_rows = 8, .bias = true});
  const auto got = this->run();
  for (const auto* results : {&got.logp, &got.lse, &got.entropy, &got.dbias})
    for (const float v : *results) EXPECT_TRUE(std::isnan(v));
  for (const auto v : got.dx) EXPECT_TRUE(std::isnan(static_cast<float>(v)));
  for (const double v : got.dw) EXPECT_TRUE(std::isnan(v));
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
