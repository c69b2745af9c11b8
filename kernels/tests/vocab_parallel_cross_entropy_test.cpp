// SPDX-License-Identifier: Apache-2.0
// vocab_parallel_cross_entropy over ranks that are threads, in shards and with options that are
// drawn, against plain loops in double over all classes; refusals.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/collective/thread_ranks.h"
#include "kernels/tests/loss_reference.h"
#include "kernels/vocab_parallel_cross_entropy/with_ranks.h"

namespace tigon::vocab_parallel_cross_entropy {
namespace {

using namespace testing_support;
using std::chrono_literals::operator""s;
using testing::IsSubstring;

// A call of all ranks, drawn by a seed.
struct Draw {
  LossOptions options;
  int64_t rows = 0, classes = 0;
  std::vector<int64_t> first;  // class of each rank, and their end
  bool weighted = false, results = false;

  int ranks() const { return static_cast<int>(first.size()) - 1; }
  int64_t width(int rank) const {
    return first[static_cast<size_t>(rank) + 1] - first[static_cast<size_t>(rank)];
  }
  bool needs_further() const { return options.label_smoothing != 0 || weighted || results; }
};

Draw draw(unsigned seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](std::vector<float> values) { return values[random() % values.size()]; };
  Draw d;
  d.options = {.label_smoothing = one_of({0, 0, 0.1f, 0.4f}),
               .z_loss = one_of({0, 0, 0.01f}),
               .softcap = one_of({0, 0, 5}),
               .reduction = Reduction::kNone};
  d.rows = 1 + random() % 5;
  d.classes = 1 + random() % (seed % 4 == 0 ? 6000 : 300);
  d.weighted = random() % 4 == 0;
  d.results = random() % 2 == 0;
  d.first = {0, d.classes};
  for (auto more = random() % 6; more > 0; --more)
    d.first.push_back(random() % (static_cast<uint64_t>(d.classes) + 1));  // some are equal
  std::sort(d.first.begin(), d.first.end());
  return d;
}

template <class P>
class OverRanks : public testing::Test {
 protected:
  using Elem = typename P::Elem;
  using Floats = std::vector<float>;

  void make(const Draw& d, unsigned seed) {
    d_ = d;
    logits_ = random_values<Elem>(static_cast<size_t>(d.rows * d.classes), 3, seed);
    targets_ = random_targets(d.rows, d.classes, d.options.ignore_index);
    if (d.rows > 3) targets_[3] = d.classes;  // no class
    upstream_ = random_values<float>(static_cast<size_t>(d.rows), 1, seed + 1);
    weights_ = random_values<float>(static_cast<size_t>(d.classes), 0.2f, seed + 2);
    for (float& w : weights_) w += 1.5f;
  }

  // What a rank gets: results of all rows, and its part of the gradient.
  struct Outputs {
    Floats loss, lse, z_part, accuracy, entropy;
    std::vector<Elem> gradient;
  };

  std::vector<Elem> shard(int rank) const {
    std::vector<Elem> values;
    for (int64_t t = 0; t < d_.rows; ++t)
      for (int64_t i = 0; i < d_.width(rank); ++i)
        values.push_back(logits_[static_cast<size_t>(t * d_.classes + first(rank) + i)]);
    return values;
  }
  int64_t first(int rank) const { return d_.first[static_cast<size_t>(rank)]; }

  Status run(Communicator& c, Outputs* result) const {
    const int64_t rows = d_.rows, width = d_.width(c.rank());
    const auto floats = [](int64_t n) {
      return DeviceArray<float>(Floats(static_cast<size_t>(n)));
    };
    const DeviceArray<Elem> logits(shard(c.rank()));
    const DeviceArray<int64_t> target(targets_);
    const DeviceArray<float> upstream(upstream_), weights(weights_);
    const DeviceArray<float> own = floats(rows * 3), all = floats(c.size() * rows * 3),
                             further = floats(rows * 4), all_further = floats(c.size() * rows * 4);
    const DeviceArray<float> loss = floats(rows), lse = floats(rows), z_part = floats(rows),
                             accuracy = floats(rows), entropy = floats(rows);
    const auto bind = [&](auto* a) {
      a->target = view<const int64_t>(target.data(), rows);
      a->classes = d_.classes;
      if (d_.weighted) a->class_weight = view<const float>(weights.data(), d_.classes);
    };

    Statistics<P> s;
    bind(&s);
    s.logits = view<const Elem>(logits.data(), rows, width);
    s.statistics = view(own.data(), rows, 3);
    if (d_.needs_further()) s.further = view(further.data(), rows, 4);
    s.first_class = first(c.rank());
    s.ignore_index = d_.options.ignore_index;
    s.label_smoothing = d_.options.label_smoothing;
    s.softcap = d_.options.softcap;
    Join<P> f;
    bind(&f);
    static_cast<LossOptions&>(f) = d_.options;
    f.statistics = view<const float>(all.data(), c.size(), rows, 3);
    if (d_.needs_further()) f.further = view<const float>(all_further.data(), c.size(), rows, 4);
    f.loss = view(loss.data(), rows);
    f.lse = view(lse.data(), rows);
    if (d_.results) {
      f.z_part = view(z_part.data(), rows);
      f.accuracy = view(accuracy.data(), rows);
      f.entropy = view(entropy.data(), rows);
    }
    const DeviceBuffer scratch(workspace(f));
    f.scratch = {scratch.data(), scratch.bytes()};
    if (const Status status = forward(s, f, &c, nullptr); !status.ok()) return status;

    Backward<P> b;
    bind(&b);
    static_cast<LossOptions&>(b) = d_.options;
    b.logits = view(logits.data(), rows, width);
    b.first_class = s.first_class;
    b.lse = view<const float>(lse.data(), rows);
    b.dloss = view<const float>(upstream.data(), rows);
    const DeviceBuffer more(workspace(b));
    b.scratch = {more.data(), more.bytes()};
    const Status status = backward(b, nullptr);
    *result = {loss.download(),     lse.download(),     z_part.download(),
               accuracy.download(), entropy.download(), logits.download()};
    return status;
  }

  // Of each rank.
  std::vector<Outputs> outputs() const {
    std::vector<Outputs> of(static_cast<size_t>(d_.ranks()));
    const Status s = run_ranks(d_.ranks(), 60s, [&](Communicator& c) {
      return run(c, &of[static_cast<size_t>(c.rank())]);
    });
    EXPECT_TRUE(s.ok()) << s.reason;
    return s.ok() ? of : std::vector<Outputs>();
  }

  void expect_right() {
    const std::vector<Outputs> of = outputs();
    ASSERT_FALSE(of.empty());
    for (int rank = 0; rank < d_.ranks(); ++rank) {
      const Outputs& got = of[static_cast<size_t>(rank)];
      SCOPED_TRACE(testing::Message() << "rank " << rank << " of " << d_.ranks());
      for (int64_t t = 0; t < d_.rows; ++t) compare_row(got, rank, t);
      EXPECT_EQ(std::memcmp(got.lse.data(), of[0].lse.data(), got.lse.size() * sizeof(float)), 0);
      EXPECT_EQ(std::memcmp(got.loss.data(), of[0].loss.data(), got.loss.size() * sizeof(float)),
                0);
    }
  }

  void compare_row(const Outputs& got, int rank, int64_t row) {
    const auto t = static_cast<size_t>(row);
    std::vector<double> x, weights;
    for (int64_t v = 0; v < d_.classes; ++v)
      x.push_back(static_cast<double>(logits_[static_cast<size_t>(row * d_.classes + v)]));
    if (d_.weighted) weights.assign(weights_.begin(), weights_.end());
    const RowReference want = row_reference(x, targets_[t], d_.options, weights);
    const auto n = static_cast<double>(d_.classes);
    const auto expect = [&](const char* what, float value, double right, double size) {
      EXPECT_TRUE(is_close<float>(value, right, size, n))
          << what << " of row " << row << ": " << value << ", want " << right;
    };
    expect("loss", got.loss[t], want.loss, want.loss_size);
    expect("lse", got.lse[t], want.lse, want.lse_size);
    if (d_.results) {
      expect("z_part", got.z_part[t], want.z_part,
             d_.options.z_loss * want.lse_size * 4 * (1 + std::abs(want.lse)));
      expect("accuracy", got.accuracy[t], want.accuracy, 0);
      expect("entropy", got.entropy[t], want.entropy, want.entropy_size);
    }
    const double g = upstream_[t];
    for (int64_t i = 0; i < d_.width(rank); ++i) {
      const auto v = static_cast<size_t>(first(rank) + i);
      const auto value =
          static_cast<double>(got.gradient[static_cast<size_t>(row * d_.width(rank) + i)]);
      ASSERT_TRUE(
          is_close<Elem>(value, g * want.gradient[v], std::abs(g) * want.gradient_size[v], n))
          << "gradient of row " << row << " class " << v << ": " << value << ", want "
          << g * want.gradient[v];
    }
  }

  Draw d_;
  std::vector<Elem> logits_;
  std::vector<int64_t> targets_;
  Floats upstream_, weights_;
};

using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(OverRanks, Policies);

TYPED_TEST(OverRanks, in_drawn_shards_is_the_loss_of_all_classes) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    this->make(draw(seed), seed);
    this->expect_right();
    if (testing::Test::HasFailure()) return;
  }
}

// Equal largest logits on two ranks: accuracy is of the first.
TYPED_TEST(OverRanks, the_first_of_equal_logits_counts) {
  Draw d;
  d.rows = 1;
  d.classes = 9;
  d.first = {0, 4, 9};
  d.results = true;
  d.options.reduction = Reduction::kNone;
  for (const int64_t target : {1, 6}) {
    this->make(d, 1);
    this->logits_[1] = this->logits_[6] = typename TypeParam::Elem(20.0f);
    this->targets_ = {target};
    this->expect_right();
  }
}

// It could come before one with classes where no logit is above its -inf.
TYPED_TEST(OverRanks, a_rank_without_classes_has_not_the_largest_logit) {
  Draw d;
  d.rows = 1;
  d.classes = 2;
  d.first = {0, 0, 2};
  d.results = true;
  d.options.reduction = Reduction::kNone;
  this->make(d, 1);
  this->logits_.assign(2, typename TypeParam::Elem(-INFINITY));
  this->targets_ = {0};
  const auto of = this->outputs();
  ASSERT_EQ(of.size(), 2u);
  for (const auto& got : of) EXPECT_EQ(got.accuracy[0], 1.0f);
}

class Refusals : public testing::Test {
 protected:
  Refusals() {
    s_.logits = view<const float>(memory_, 2, 4);
    s_.target = view<const int64_t>(targets_, 2);
    s_.statistics = view(memory_, 2, 3);
    s_.classes = 8;
    f_.statistics = view<const float>(memory_, 2, 2, 3);
    f_.target = s_.target;
    f_.loss = view(memory_, 1);
    f_.lse = view(memory_, 2);
    f_.classes = 8;
    f_.scratch = {scratch_, sizeof scratch_};
  }
  std::string said(const Status& s) {
    EXPECT_EQ(s.code, Status::kInvalidArgument);
    return s.reason;
  }
  float memory_[16] = {};
  int64_t targets_[2] = {};
  alignas(256) char scratch_[1024];
  Statistics<F32> s_;
  Join<F32> f_;
};

TEST_F(Refusals, name_what_is_wrong_with_a_shard) {
  s_.first_class = 5;
  EXPECT_PRED_FORMAT2(IsSubstring, "first_class + V at most classes",
                      said(statistics(s_, nullptr)));
  s_.first_class = -1;
  EXPECT_PRED_FORMAT2(IsSubstring, "first_class must be at least 0", said(statistics(s_, nullptr)));
  s_.first_class = 0;
  s_.classes = 0;
  EXPECT_PRED_FORMAT2(IsSubstring, "classes of all ranks", said(statistics(s_, nullptr)));
  s_.classes = int64_t{1} << 31;
  EXPECT_EQ(statistics(s_, nullptr).code, Status::kUnsupported);
}

TEST_F(Refusals, name_overlapping_rows) {
  s_.logits.stride[0] = 3;
  EXPECT_PRED_FORMAT2(IsSubstring, "must not overlap", said(statistics(s_, nullptr)));
}

TEST_F(Refusals, name_statistics_that_do_not_suffice) {
  s_.label_smoothing = 0.1f;
  EXPECT_PRED_FORMAT2(IsSubstring, "needs further statistics", said(statistics(s_, nullptr)));
  f_.entropy = view(memory_, 1);
  EXPECT_PRED_FORMAT2(IsSubstring, "need further statistics", said(join(f_, nullptr)));
  f_.entropy = {};
  f_.statistics = view<const float>(memory_, 2, 2, 4);
  EXPECT_PRED_FORMAT2(IsSubstring, "must be [R >= 1, T, 3]", said(join(f_, nullptr)));
}

// Memory of nothing may be null, as torch has it.
TEST_F(Refusals, are_none_without_rows) {
  s_.label_smoothing = 0.1f;
  s_.logits = view<const float>(static_cast<const float*>(nullptr), 0, 4);
  s_.target = view<const int64_t>(static_cast<const int64_t*>(nullptr), 0);
  s_.statistics = view<float>(static_cast<float*>(nullptr), 0, 3);
  const Status s = statistics(s_, nullptr);
  EXPECT_TRUE(s.ok()) << s.reason;
}

TEST_F(Refusals, name_a_group_of_another_size) {
  const Status s = run_ranks(1, 60s, [&](Communicator& c) { return forward(s_, f_, &c, nullptr); });
  EXPECT_PRED_FORMAT2(IsSubstring, "of R ranks", s.reason);
}

}  // namespace
}  // namespace tigon::vocab_parallel_cross_entropy
