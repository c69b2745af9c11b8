// SPDX-License-Identifier: Apache-2.0
// vocab_parallel_log_prob over ranks that are threads, in shards and with options that are drawn,
// against plain loops in double over all classes, and on one rank against log_prob.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/collective/thread_ranks.h"
#include "kernels/tests/loss_reference.h"
#include "kernels/vocab_parallel_log_prob/with_ranks.h"

namespace tigon::vocab_parallel_log_prob {
namespace {

using namespace testing_support;
using namespace std::chrono_literals;

// A call of all ranks, drawn by a seed.
struct Draw {
  Options options;
  int64_t rows = 0, classes = 0;
  std::vector<int64_t> first;  // class of each rank, and their end
  bool entropy = false, in_place = false;

  int ranks() const { return static_cast<int>(first.size()) - 1; }
  int64_t first_of(int rank) const { return first[static_cast<size_t>(rank)]; }
  int64_t width(int rank) const { return first_of(rank + 1) - first_of(rank); }
};

Draw draw(unsigned seed) {
  std::mt19937 random(seed);
  Draw d;
  const float temperatures[] = {1.0f, 0.5f, 3.0f};
  d.options.temperature = temperatures[random() % 3];
  d.rows = 1 + random() % 5;
  d.classes = 1 + random() % (seed % 4 == 0 ? 6000 : 300);
  d.entropy = random() % 2 == 0;
  d.in_place = random() % 2 == 0;
  d.first = {0, d.classes};
  for (auto more = random() % 6; more > 0; --more)
    d.first.push_back(random() % (static_cast<uint64_t>(d.classes) + 1));  // some are equal
  std::sort(d.first.begin(), d.first.end());
  return d;
}

using Floats = std::vector<float>;

// What a rank gets: results of all rows, and its part of the gradient.
template <class Elem>
struct Outputs {
  Floats logp, lse, entropy;
  std::vector<Elem> gradient;
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class P>
class OverRanks : public testing::Test {
 protected:
  using Elem = typename P::Elem;

  void make(const Draw& d, unsigned seed) {
    d_ = d;
    const auto rows = static_cast<size_t>(d.rows);
    logits_ =
        random_values<Elem>(rows * static_cast<size_t>(d.classes), 3 * d.options.temperature, seed);
    targets_ = random_targets(d.rows, d.classes, d.options.ignore_index);
    if (d.rows > 3) targets_[3] = d.classes;  // no class
    dlogp_ = random_values<float>(rows, 1, seed + 1);
    dentropy_ = random_values<float>(rows, 1, seed + 2);
  }

  std::vector<Elem> shard(int rank) const {
    std::vector<Elem> values;
    for (int64_t t = 0; t < d_.rows; ++t) {
      const auto row = logits_.begin() + t * d_.classes;
      values.insert(values.end(), row + d_.first_of(rank), row + d_.first_of(rank + 1));
    }
    return values;
  }

  // Of a call that has some classes, or all.
  struct Memory {
    DeviceArray<int64_t> target;
    DeviceArray<Elem> logits, gradient;
    DeviceArray<float> dlogp, dentropy, logp, lse, entropy;
  };
  Memory memory(const std::vector<Elem>& logits) const {
    const Floats unset(static_cast<size_t>(d_.rows), -7.0f);
    return {DeviceArray<int64_t>(targets_), DeviceArray<Elem>(logits),
            DeviceArray<Elem>(logits),      DeviceArray<float>(dlogp_),
            DeviceArray<float>(dentropy_),  DeviceArray<float>(unset),
            DeviceArray<float>(unset),      DeviceArray<float>(unset)};
  }
  template <class Args>
  void bind_results(const Memory& m, Args* a) const {
    a->target = view<const int64_t>(m.target.data(), d_.rows);
    static_cast<Options&>(*a) = d_.options;
    a->logp = view(m.logp.data(), d_.rows);
    a->lse = view(m.lse.data(), d_.rows);
    if (d_.entropy) a->entropy = view(m.entropy.data(), d_.rows);
  }
  void bind_gradient(const Memory& m, int64_t width, log_prob::Backward<P>* b) const {
    static_cast<Options&>(*b) = d_.options;
    b->logits = view<const Elem>(m.logits.data(), d_.rows, width);
    b->target = view<const int64_t>(m.target.data(), d_.rows);
    b->lse = view<const float>(m.lse.data(), d_.rows);
    b->dlogp = view<const float>(m.dlogp.data(), d_.rows);
    if (d_.entropy) {
      b->dentropy = view<const float>(m.dentropy.data(), d_.rows);
      b->entropy = view<const float>(m.entropy.data(), d_.rows);
    }
    b->dlogits = view((d_.in_place ? m.logits : m.gradient).data(), d_.rows, width);
  }
  Outputs<Elem> outputs(const Memory& m) const {
    return {m.logp.download(), m.lse.download(), m.entropy.download(),
            (d_.in_place ? m.logits : m.gradient).download()};
  }

  Status run(Communicator& c, Outputs<Elem>* result) const {
    const int64_t rows = d_.rows, width = d_.width(c.rank());
    const Memory m = memory(shard(c.rank()));
    const DeviceArray<float> own(Floats(static_cast<size_t>(rows * 3))),
        own_moment(Floats(static_cast<size_t>(rows))),
        all(Floats(static_cast<size_t>(c.size() * rows * 3))),
        all_moments(Floats(static_cast<size_t>(c.size() * rows)));
    Statistics<P> s;
    static_cast<Options&>(s) = d_.options;
    static_cast<Shard&>(s) = {d_.first_of(c.rank()), d_.classes};
    s.logits = view<const Elem>(m.logits.data(), rows, width);
    s.target = view<const int64_t>(m.target.data(), rows);
    s.statistics = view(own.data(), rows, 3);
    Join<P> j;
    bind_results(m, &j);
    j.statistics = view<const float>(all.data(), c.size(), rows, 3);
    if (d_.entropy) {
      s.moment = view(own_moment.data(), rows);
      j.moment = view<const float>(all_moments.data(), c.size(), rows);
    }
    if (const Status status = forward(s, j, &c, nullptr); !status.ok()) return status;
    Backward<P> b;
    bind_gradient(m, width, &b);
    static_cast<Shard&>(b) = s;
    const Status status = backward(b, nullptr);
    *result = outputs(m);
    return status;
  }

  // Of each rank.
  std::vector<Outputs<Elem>> all_outputs() const {
    std::vector<Outputs<Elem>> of(static_cast<size_t>(d_.ranks()));
    const Status s = run_ranks(d_.ranks(), 60s, [&](Communicator& c) {
      return run(c, &of[static_cast<size_t>(c.rank())]);
    });
    EXPECT_TRUE(s.ok()) << s.reason;
    return s.ok() ? of : std::vector<Outputs<Elem>>();
  }

  // Of log_prob.
  Outputs<Elem> whole() const {
    const Memory m = memory(logits_);
    log_prob::Forward<P> f;
    bind_results(m, &f);
    f.logits = view<const Elem>(m.logits.data(), d_.rows, d_.classes);
    EXPECT_TRUE(forward(f, nullptr).ok());
    log_prob::Backward<P> b;
    bind_gradient(m, d_.classes, &b);
    EXPECT_TRUE(backward(b, nullptr).ok());
    return outputs(m);
  }

  void expect_right() {
    const std::vector<Outputs<Elem>> of = all_outputs();
    ASSERT_FALSE(of.empty());
    for (int rank = 0; rank < d_.ranks(); ++rank) {
      const Outputs<Elem>& got = of[static_cast<size_t>(rank)];
      SCOPED_TRACE(testing::Message() << "rank " << rank << " of " << d_.ranks());
      for (int64_t t = 0; t < d_.rows; ++t) compare_row(got, rank, t);
      EXPECT_TRUE(same_bits(got.logp, of[0].logp));
      EXPECT_TRUE(same_bits(got.lse, of[0].lse));
      EXPECT_TRUE(same_bits(got.entropy, of[0].entropy));
    }
  }

  void compare_row(const Outputs<Elem>& got, int rank, int64_t row) {
    const auto t = static_cast<size_t>(row);
    const double tau = d_.options.temperature, n = static_cast<double>(d_.classes);
    std::vector<double> z;
    for (int64_t v = 0; v < d_.classes; ++v)
      z.push_back(static_cast<double>(logits_[static_cast<size_t>(row * d_.classes + v)]) / tau);
    const LossOptions plain{.ignore_index = d_.options.ignore_index};
    const RowReference want = row_reference(z, targets_[t], plain);
    const bool ignored = targets_[t] == d_.options.ignore_index;
    const double scale = 40 + std::abs(want.lse);
    EXPECT_TRUE(is_close<float>(got.logp[t], -want.loss, scale, n)) << "logp of row " << row;
    EXPECT_TRUE(is_close<float>(got.lse[t], want.lse, scale, n)) << "lse of row " << row;
    EXPECT_TRUE(!d_.entropy || is_close<float>(got.entropy[t], want.entropy, scale, n))
        << "entropy of row " << row;
    const double g = dlogp_[t], h = d_.entropy && !ignored ? dentropy_[t] : 0;
    for (int64_t i = 0; i < d_.width(rank); ++i) {
      const auto v = static_cast<size_t>(d_.first_of(rank) + i);
      const double logp = z[v] - want.lse, p = std::exp(logp);
      const double of_entropy = p > 0 ? p * (logp + want.entropy) : 0;
      const double right = (-g * want.gradient[v] - h * of_entropy) / tau;
      const double hit = static_cast<int64_t>(v) == targets_[t] ? 1 : 0;
      const double most = (hit + p * scale) * (std::abs(g) + scale * std::abs(h)) / tau;
      const auto value =
          static_cast<double>(got.gradient[static_cast<size_t>(row * d_.width(rank) + i)]);
      ASSERT_TRUE(is_close<Elem>(value, right, most, n))
          << "gradient of row " << row << " class " << v << ": " << value << ", want " << right;
    }
  }

  Draw d_;
  std::vector<Elem> logits_;
  std::vector<int64_t> targets_;
  Floats dlogp_, dentropy_;
};

using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(OverRanks, Policies);

TYPED_TEST(OverRanks, in_drawn_shards_are_the_results_of_all_classes) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    this->make(draw(seed), seed);
    this->expect_right();
    if (testing::Test::HasFailure()) return;
  }
}

// Blocks of both sizes; two and eight blocks that share a row.
TYPED_TEST(OverRanks, one_rank_has_the_bits_of_log_prob) {
  for (const int64_t classes : {1, 40, 20001, 70001, 300001})
    for (const bool entropy : {false, true}) {
      SCOPED_TRACE(testing::Message() << classes << " classes, entropy " << entropy);
      Draw d = draw(1);
      d.rows = 4;
      d.classes = classes;
      d.first = {0, classes};
      d.entropy = entropy;
      this->make(d, 5);
      const auto of = this->all_outputs();
      const auto whole = this->whole();
      ASSERT_EQ(of.size(), 1u);
      EXPECT_TRUE(same_bits(of[0].logp, whole.logp));
      EXPECT_TRUE(same_bits(of[0].lse, whole.lse));
      EXPECT_TRUE(same_bits(of[0].entropy, whole.entropy));
      EXPECT_TRUE(same_bits(of[0].gradient, whole.gradient));
    }
}

// A shard of masked logits is as one without classes.
TYPED_TEST(OverRanks, a_masked_shard_adds_nothing) {
  Draw d = draw(1);
  d.rows = 1;
  d.classes = 9;
  d.first = {0, 0, 4, 9};
  d.entropy = true;
  this->make(d, 1);
  std::fill_n(this->logits_.begin(), 4, typename TypeParam::Elem(-INFINITY));
  this->targets_ = {6};
  this->expect_right();
}

}  // namespace
}  // namespace tigon::vocab_parallel_log_prob
