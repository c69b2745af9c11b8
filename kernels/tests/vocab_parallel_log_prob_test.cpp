// SPDX-License-Identifier: Apache-2.0
// vocab_parallel_log_prob over ranks that are threads, in shards and with options that are drawn:
// what the passes of all shards give one after the other, with what the ranks tell each other put
// together by hand; one rank has the bits of log_prob. What those are is checked as every op is.
#include <gtest/gtest.h>

#include "kernels/collective/thread_ranks.h"
#include "kernels/tests/device_array.h"
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

  // Of so many ranks.
  struct Gathered {
    DeviceArray<float> statistics, moments;
  };
  Gathered gathered(int ranks) const {
    return {DeviceArray<float>(Floats(static_cast<size_t>(ranks * d_.rows * 3))),
            DeviceArray<float>(Floats(static_cast<size_t>(ranks * d_.rows)))};
  }
  // `place`: of the rank in what is gathered.
  Statistics<P> statistics_of(const Memory& m, int rank, const Gathered& to, int place) const {
    Statistics<P> s;
    static_cast<Options&>(s) = d_.options;
    static_cast<Shard&>(s) = {d_.first_of(rank), d_.classes};
    s.logits = view<const Elem>(m.logits.data(), d_.rows, d_.width(rank));
    s.target = view<const int64_t>(m.target.data(), d_.rows);
    s.statistics = view(to.statistics.data() + place * d_.rows * 3, d_.rows, 3);
    if (d_.entropy) s.moment = view(to.moments.data() + place * d_.rows, d_.rows);
    return s;
  }
  Join<P> join_of(const Memory& m, const Gathered& all, int ranks) const {
    Join<P> j;
    bind_results(m, &j);
    j.statistics = view<const float>(all.statistics.data(), ranks, d_.rows, 3);
    if (d_.entropy) j.moment = view<const float>(all.moments.data(), ranks, d_.rows);
    return j;
  }
  Status gradient(const Memory& m, int rank) const {
    Backward<P> b;
    bind_gradient(m, d_.width(rank), &b);
    static_cast<Shard&>(b) = {d_.first_of(rank), d_.classes};
    return backward(b, nullptr);
  }

  // Of each rank.
  std::vector<Outputs<Elem>> run_all() const {
    std::vector<Outputs<Elem>> of(static_cast<size_t>(d_.ranks()));
    const Status s = run_ranks(d_.ranks(), 60s, [&](Communicator& c) {
      const Memory m = memory(shard(c.rank()));
      const Gathered own = gathered(1), all = gathered(c.size());
      const Status told =
          forward(statistics_of(m, c.rank(), own, 0), join_of(m, all, c.size()), &c, nullptr);
      if (!told.ok()) return told;
      const Status status = gradient(m, c.rank());
      of[static_cast<size_t>(c.rank())] = outputs(m);
      return status;
    });
    EXPECT_TRUE(s.ok()) << s.reason;
    return of;
  }

  // The same of one shard after the other.
  std::vector<Outputs<Elem>> one_by_one() const {
    const Gathered all = gathered(d_.ranks());
    std::vector<Memory> memories;
    for (int rank = 0; rank < d_.ranks(); ++rank) {
      memories.push_back(memory(shard(rank)));
      EXPECT_TRUE(statistics(statistics_of(memories.back(), rank, all, rank), nullptr).ok());
    }
    std::vector<Outputs<Elem>> of;
    for (int rank = 0; rank < d_.ranks(); ++rank) {
      const Memory& m = memories[static_cast<size_t>(rank)];
      EXPECT_TRUE(join(join_of(m, all, d_.ranks()), nullptr).ok());
      EXPECT_TRUE(gradient(m, rank).ok());
      of.push_back(outputs(m));
    }
    return of;
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

  Draw d_;
  std::vector<Elem> logits_;
  std::vector<int64_t> targets_;
  Floats dlogp_, dentropy_;
};

using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(OverRanks, Policies);

TYPED_TEST(OverRanks, in_drawn_shards_has_the_bits_of_one_shard_after_the_other) {
  for (unsigned seed = 1; seed <= 40 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    this->make(draw(seed), seed);
    const auto got = this->run_all(), want = this->one_by_one();
    for (size_t rank = 0; rank < got.size(); ++rank) {
      EXPECT_TRUE(same_bits(got[rank].logp, want[rank].logp));
      EXPECT_TRUE(same_bits(got[rank].lse, want[rank].lse));
      EXPECT_TRUE(same_bits(got[rank].entropy, want[rank].entropy));
      EXPECT_TRUE(same_bits(got[rank].gradient, want[rank].gradient));
    }
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
      const auto of = this->run_all();
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
  d.entropy = true;
  std::vector<Outputs<typename TypeParam::Elem>> of;
  for (const std::vector<int64_t>& first : {std::vector<int64_t>{0, 0, 4, 9}, {0, 9}}) {
    d.first = first;
    this->make(d, 1);
    std::fill_n(this->logits_.begin(), 4, typename TypeParam::Elem(-INFINITY));
    this->targets_ = {6};
    of.push_back(this->run_all().back());
  }
  EXPECT_FLOAT_EQ(of[0].logp[0], of[1].logp[0]);
  EXPECT_FLOAT_EQ(of[0].entropy[0], of[1].entropy[0]);
}

}  // namespace
}  // namespace tigon::vocab_parallel_log_prob
