// SPDX-License-Identifier: Apache-2.0
// vocab_parallel_cross_entropy over ranks that are threads, in shards and with options that are
// drawn: what the passes of all shards give one after the other, with what the ranks tell each
// other put together by hand. What those are is checked as every op is.
#include <gtest/gtest.h>

#include "kernels/collective/thread_ranks.h"
#include "kernels/tests/device_array.h"
#include "kernels/vocab_parallel_cross_entropy/with_ranks.h"

namespace tigon::vocab_parallel_cross_entropy {
namespace {

using namespace testing_support;
using namespace std::chrono_literals;
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
    weights_ = random_values<float>(static_cast<size_t>(d.classes), 0.2f, seed + 1);
    for (float& w : weights_) w += 1.5f;
  }

  // What a rank gets.
  struct Outputs {
    Floats loss, lse, z_part, accuracy, entropy;
  };

  std::vector<Elem> shard(int rank) const {
    std::vector<Elem> values;
    for (int64_t t = 0; t < d_.rows; ++t)
      for (int64_t i = 0; i < d_.width(rank); ++i)
        values.push_back(logits_[static_cast<size_t>(t * d_.classes + first(rank) + i)]);
    return values;
  }
  int64_t first(int rank) const { return d_.first[static_cast<size_t>(rank)]; }

  struct Memory {
    DeviceArray<Elem> logits;
    DeviceArray<int64_t> target;
    DeviceArray<float> weights, loss, lse, z_part, accuracy, entropy;
  };
  // Of so many ranks.
  struct Gathered {
    DeviceArray<float> statistics, further;
  };

  static DeviceArray<float> floats(int64_t n) {
    return DeviceArray<float>(Floats(static_cast<size_t>(n), -1.0f));
  }
  Gathered gathered(int ranks) const {
    return {floats(ranks * d_.rows * 3), floats(ranks * d_.rows * 4)};
  }
  Memory memory(int rank) const {
    return {DeviceArray<Elem>(shard(rank)),
            DeviceArray<int64_t>(targets_),
            DeviceArray<float>(weights_),
            floats(d_.rows),
            floats(d_.rows),
            floats(d_.rows),
            floats(d_.rows),
            floats(d_.rows)};
  }
  template <class Args>
  void bind(const Memory& m, Args* a) const {
    a->target = view<const int64_t>(m.target.data(), d_.rows);
    a->classes = d_.classes;
    if (d_.weighted) a->class_weight = view<const float>(m.weights.data(), d_.classes);
  }
  // `place`: of the rank in what is gathered.
  Statistics<P> statistics_of(const Memory& m, int rank, const Gathered& to, int place) const {
    Statistics<P> s;
    bind(m, &s);
    s.logits = view<const Elem>(m.logits.data(), d_.rows, d_.width(rank));
    s.statistics = view(to.statistics.data() + place * d_.rows * 3, d_.rows, 3);
    if (d_.needs_further()) s.further = view(to.further.data() + place * d_.rows * 4, d_.rows, 4);
    s.first_class = first(rank);
    s.ignore_index = d_.options.ignore_index;
    s.label_smoothing = d_.options.label_smoothing;
    s.softcap = d_.options.softcap;
    return s;
  }
  Join<P> join_of(const Memory& m, const Gathered& all, int ranks) const {
    Join<P> j;
    bind(m, &j);
    static_cast<LossOptions&>(j) = d_.options;
    j.statistics = view<const float>(all.statistics.data(), ranks, d_.rows, 3);
    if (d_.needs_further()) j.further = view<const float>(all.further.data(), ranks, d_.rows, 4);
    j.loss = view(m.loss.data(), d_.rows);
    j.lse = view(m.lse.data(), d_.rows);
    if (d_.results) {
      j.z_part = view(m.z_part.data(), d_.rows);
      j.accuracy = view(m.accuracy.data(), d_.rows);
      j.entropy = view(m.entropy.data(), d_.rows);
    }
    return j;
  }
  static Outputs outputs(const Memory& m) {
    return {m.loss.download(), m.lse.download(), m.z_part.download(), m.accuracy.download(),
            m.entropy.download()};
  }

  // Of each rank.
  std::vector<Outputs> run_all() const {
    std::vector<Outputs> of(static_cast<size_t>(d_.ranks()));
    const Status s = run_ranks(d_.ranks(), 60s, [&](Communicator& c) {
      const Memory m = memory(c.rank());
      const Gathered own = gathered(1), all = gathered(c.size());
      Join<P> join = join_of(m, all, c.size());
      const DeviceBuffer scratch(workspace(join));
      join.scratch = {scratch.data(), scratch.bytes()};
      const Status status = forward(statistics_of(m, c.rank(), own, 0), join, &c, nullptr);
      of[static_cast<size_t>(c.rank())] = outputs(m);
      return status;
    });
    EXPECT_TRUE(s.ok()) << s.reason;
    return of;
  }

  // The same of one shard after the other.
  Outputs one_by_one() const {
    const Gathered all = gathered(d_.ranks());
    for (int rank = 0; rank < d_.ranks(); ++rank) {
      const Memory m = memory(rank);
      EXPECT_TRUE(statistics(statistics_of(m, rank, all, rank), nullptr).ok());
      device_synchronize();
    }
    const Memory m = memory(0);
    auto join_args = join_of(m, all, d_.ranks());
    launch(join_args, join<P>);
    return outputs(m);
  }

  Draw d_;
  std::vector<Elem> logits_;
  std::vector<int64_t> targets_;
  Floats weights_;
};

using Policies = testing::Types<F32, BF16, F16>;
TYPED_TEST_SUITE(OverRanks, Policies);

TYPED_TEST(OverRanks, in_drawn_shards_has_the_bits_of_one_shard_after_the_other) {
  for (unsigned seed = 1; seed <= 40 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    this->make(draw(seed), seed);
    const auto want = this->one_by_one();
    for (const auto& got : this->run_all()) {
      EXPECT_TRUE(same_bits(got.loss, want.loss));
      EXPECT_TRUE(same_bits(got.lse, want.lse));
      EXPECT_TRUE(same_bits(got.z_part, want.z_part));
      EXPECT_TRUE(same_bits(got.accuracy, want.accuracy));
      EXPECT_TRUE(same_bits(got.entropy, want.entropy));
    }
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
    for (const auto& got : this->run_all()) EXPECT_EQ(got.accuracy[0], target == 1 ? 1.0f : 0.0f);
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
  for (const auto& got : this->run_all()) EXPECT_EQ(got.accuracy[0], 1.0f);
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
