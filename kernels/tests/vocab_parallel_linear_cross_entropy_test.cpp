// SPDX-License-Identifier: Apache-2.0
// vocab_parallel_linear_cross_entropy over ranks that are threads, in shards and with options that
// are drawn: what the passes of all shards give one after the other, with what the ranks tell each
// other put together by hand. What those are is checked as every op is.
#include "kernels/vocab_parallel_linear_cross_entropy/vocab_parallel_linear_cross_entropy.h"

#include <gtest/gtest.h>

#include "kernels/collective/thread_ranks.h"
#include "kernels/tests/linear_cross_entropy_call.h"
#include "kernels/vocab_parallel_linear_cross_entropy/with_ranks.h"

namespace tigon::vocab_parallel_linear_cross_entropy {
namespace {

using namespace testing_support;
using linear_cross_entropy::Dw;
using linear_cross_entropy::LinearCrossEntropy;
using linear_cross_entropy::Problem;
using namespace std::chrono_literals;
using testing::IsSubstring;
using vocab_parallel_cross_entropy::Join;

// A problem and the first class of each rank, drawn by a seed.
struct Draw {
  Problem problem;
  std::vector<int64_t> first;  // and their end

  int ranks() const { return static_cast<int>(first.size()) - 1; }
};

Draw draw(unsigned seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](auto... values) {
    const std::array all = {values...};
    return all[random() % all.size()];
  };
  Draw d;
  Problem& p = d.problem;
  p.options = {.label_smoothing = one_of(0.0f, 0.0f, 0.1f),
               .z_loss = one_of(0.0f, 0.01f),
               .softcap = one_of(0.0f, 0.0f, 5.0f),
               .reduction = one_of(Reduction::kMean, Reduction::kSum, Reduction::kNone)};
  p.rows = 1 + random() % 12;
  p.hidden = 1 + random() % 40;
  p.columns = 1 + random() % 70;
  p.rows_per_chunk = one_of(100, 5, 1);
  p.columns_per_chunk = one_of(0, 0, 8);
  p.dx = one_of(true, true, false);
  p.dw = one_of(Dw::kElem, Dw::kFp32, Dw::kAccum);
  p.bias = one_of(false, true);
  std::set<int64_t> inner;
  for (auto more = random() % 6; more > 0 && p.columns > 1; --more)
    inner.insert(1 + static_cast<int64_t>(random() % static_cast<uint64_t>(p.columns - 1)));
  d.first = {0};
  d.first.insert(d.first.end(), inner.begin(), inner.end());
  d.first.push_back(p.columns);
  return d;
}

template <class P>
class OverRanks : public LinearCrossEntropy<P> {
 protected:
  using Elem = typename P::Elem;
  using Base = LinearCrossEntropy<P>;
  using Base::p_;
  struct Outputs {
    std::vector<float> loss, lse, dx;
    std::vector<Elem> dw;
    std::vector<float> held, dbias;
  };

  // What each rank gets; of the classes its own.
  std::vector<Outputs> run_all(const Draw& d) {
    std::vector<Outputs> of(static_cast<size_t>(d.ranks()));
    const Status s = run_ranks(d.ranks(), 60s, [&](Communicator& c) {
      const Memory m = memory(d, c.rank());
      const Gathered own = gathered(1), all = gathered(c.size());
      Statistics<P> statistics = statistics_of(m, own, 0);
      Join<P> join = join_of(m, all, c.size());
      Backward<P> gradients = backward_of(m);
      const DeviceBuffer scratch(
          std::max({workspace(statistics), workspace(join), workspace(gradients)}));
      statistics.scratch = join.scratch = gradients.scratch = {scratch.data(), scratch.bytes()};
      if (const Status told = forward(statistics, join, &c, nullptr); !told.ok()) return told;
      const Status done = p_.dx ? backward(gradients, &c, nullptr) : backward(gradients, nullptr);
      of[static_cast<size_t>(c.rank())] = outputs(m);
      return done;
    });
    EXPECT_TRUE(s.ok()) << s.reason;
    return of;
  }

  // The same of one shard after the other.
  std::vector<Outputs> one_by_one(const Draw& d) {
    const Gathered all = gathered(d.ranks());
    std::vector<Memory> memories;
    for (int rank = 0; rank < d.ranks(); ++rank) {
      memories.push_back(memory(d, rank));
      auto statistics_args = statistics_of(memories.back(), all, rank);
      launch(statistics_args, statistics<P>);
    }
    std::vector<Outputs> of;
    for (const Memory& m : memories) {
      auto join_args = join_of(m, all, d.ranks());
      launch(join_args, vocab_parallel_cross_entropy::join<P>);
      auto gradients = backward_of(m);
      launch(gradients, [](auto& a, Stream stream) { return backward(a, stream); });
      of.push_back(outputs(m));
    }
    add_dx(&of);
    return of;
  }

 private:
  struct Memory {
    int64_t first, width, classes;
    DeviceArray<Elem> x, w, bias, dw;
    DeviceArray<int64_t> target;
    DeviceArray<float> dloss, dx, dbias, held, loss, lse;
  };
  // Of so many ranks.
  struct Gathered {
    DeviceArray<float> statistics, further;
  };

  static DeviceArray<float> floats(int64_t n) {
    return DeviceArray<float>(std::vector<float>(static_cast<size_t>(n), -1.0f));
  }
  Gathered gathered(int ranks) const {
    return {floats(ranks * p_.rows * 3), floats(ranks * p_.rows * 4)};
  }
  Memory memory(const Draw& d, int rank) const {
    const int64_t first = d.first[static_cast<size_t>(rank)],
                  end = d.first[static_cast<size_t>(rank) + 1], hidden = p_.hidden;
    const auto part = [](const auto& all, int64_t from, int64_t to) {
      return DeviceArray(std::vector(all.begin() + from, all.begin() + to));
    };
    return {.first = first,
            .width = end - first,
            .classes = p_.columns,
            .x = DeviceArray<Elem>(this->x_),
            .w = part(this->w_, first * hidden, end * hidden),
            .bias = part(this->bias_, first, end),
            .dw = part(this->w_, first * hidden, end * hidden),
            .target = DeviceArray<int64_t>(this->targets_),
            .dloss = DeviceArray<float>(this->upstream_),
            .dx = floats(p_.rows * hidden),
            .dbias = floats(end - first),
            .held = part(this->held_, first * hidden, end * hidden),
            .loss = floats(this->losses()),
            .lse = floats(p_.rows)};
  }

  template <class Args>
  void bind(const Memory& m, Args* a) const {
    a->x = view<const Elem>(m.x.data(), p_.rows, p_.hidden);
    a->w = view<const Elem>(m.w.data(), m.width, p_.hidden);
    a->target = view<const int64_t>(m.target.data(), p_.rows);
    if (p_.bias) a->bias = view<const Elem>(m.bias.data(), m.width);
    a->first_class = m.first;
    a->classes = m.classes;
    a->logits_bytes = p_.rows_per_chunk * ((m.width + 7) / 8 * 8) * int64_t{sizeof(Elem)};
  }
  bool needs_further() const { return p_.options.label_smoothing != 0; }
  // `place`: of the rank in what is gathered.
  Statistics<P> statistics_of(const Memory& m, const Gathered& to, int place) const {
    Statistics<P> s;
    bind(m, &s);
    s.statistics = view(to.statistics.data() + place * p_.rows * 3, p_.rows, 3);
    if (needs_further()) s.further = view(to.further.data() + place * p_.rows * 4, p_.rows, 4);
    s.ignore_index = p_.options.ignore_index;
    s.label_smoothing = p_.options.label_smoothing;
    s.softcap = p_.options.softcap;
    return s;
  }
  Join<P> join_of(const Memory& m, const Gathered& all, int ranks) const {
    Join<P> j;
    static_cast<LossOptions&>(j) = p_.options;
    j.classes = m.classes;
    j.target = view<const int64_t>(m.target.data(), p_.rows);
    j.statistics = view<const float>(all.statistics.data(), ranks, p_.rows, 3);
    if (needs_further()) j.further = view<const float>(all.further.data(), ranks, p_.rows, 4);
    j.loss = view(m.loss.data(), this->losses());
    j.lse = view(m.lse.data(), p_.rows);
    return j;
  }
  Backward<P> backward_of(const Memory& m) const {
    Backward<P> b;
    bind(m, &b);
    static_cast<LossOptions&>(b) = p_.options;
    if (p_.columns_per_chunk > 0) {
      b.split = Split::kVocabulary;
      b.logits_bytes = p_.columns_per_chunk * p_.rows * int64_t{sizeof(Elem)};
    }
    b.lse = view<const float>(m.lse.data(), p_.rows);
    b.dloss = view<const float>(m.dloss.data(), this->losses());
    if (p_.dx) b.dx_fp32 = view(m.dx.data(), p_.rows, p_.hidden);
    if (p_.dw == Dw::kElem) b.dw = view(m.dw.data(), m.width, p_.hidden);
    if (p_.dw == Dw::kFp32) b.dw_fp32 = view(m.held.data(), m.width, p_.hidden);
    if (p_.dw == Dw::kAccum) b.dw_accum = view(m.held.data(), m.width, p_.hidden);
    if (p_.bias) b.dbias = view(m.dbias.data(), m.width);
    return b;
  }
  Outputs outputs(const Memory& m) const {
    return {m.loss.download(), m.lse.download(),  m.dx.download(),
            m.dw.download(),   m.held.download(), m.dbias.download()};
  }
  // dx of all ranks, as their threads add it up.
  void add_dx(std::vector<Outputs>* of) const {
    if (!p_.dx) return;
    std::vector<float> sum((*of)[0].dx.size());
    for (size_t i = 0; i < sum.size(); ++i) {
      double all = 0;
      for (const Outputs& one : *of) all += static_cast<double>(one.dx[i]);
      sum[i] = static_cast<float>(all);
    }
    for (Outputs& one : *of) one.dx = sum;
  }
};

TYPED_TEST_SUITE(OverRanks, linear_cross_entropy::Policies);

TYPED_TEST(OverRanks, in_drawn_shards_has_the_bits_of_one_shard_after_the_other) {
  for (unsigned seed = 1; seed <= 30 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Draw d = draw(seed);
    this->make(d.problem);
    const auto of = this->run_all(d), want = this->one_by_one(d);
    for (size_t rank = 0; rank < of.size(); ++rank) {
      SCOPED_TRACE(testing::Message() << "rank " << rank);
      EXPECT_TRUE(same_bits(of[rank].loss, want[0].loss));
      EXPECT_TRUE(same_bits(of[rank].lse, want[0].lse));
      EXPECT_TRUE(same_bits(of[rank].dx, want[rank].dx));
      EXPECT_TRUE(same_bits(of[rank].dw, want[rank].dw));
      EXPECT_TRUE(same_bits(of[rank].held, want[rank].held));
      EXPECT_TRUE(same_bits(of[rank].dbias, want[rank].dbias));
    }
  }
}

TEST(Backward, tells_of_the_rows_that_are_done_where_rows_are_cut) {
  const DeviceArray<float> x(std::vector<float>(48)), w(std::vector<float>(12)),
      lse(std::vector<float>(12)), dx(std::vector<float>(48));
  const DeviceArray<int64_t> target(std::vector<int64_t>(12));
  Backward<F32> b;
  b.x = view<const float>(x.data(), 12, 4);
  b.w = view<const float>(w.data(), 3, 4);
  b.target = view<const int64_t>(target.data(), 12);
  b.lse = view<const float>(lse.data(), 12);
  b.dx_fp32 = view(dx.data(), 12, 4);
  b.classes = 3;
  b.logits_bytes = 5 * 8 * 4;  // five rows at most
  std::vector<int64_t> ends;
  const auto tell = [&](int64_t end) {
    ends.push_back(end);
    return Status{};
  };
  const auto run = [&] {
    const DeviceBuffer scratch(workspace(b));
    b.scratch = {scratch.data(), scratch.bytes()};
    const Status s = backward(b, tell, nullptr);
    device_synchronize();
    EXPECT_TRUE(s.ok()) << s.reason;
    return std::exchange(ends, {});
  };
  EXPECT_EQ(run(), (std::vector<int64_t>{4, 8, 12}));
  b.split = Split::kVocabulary;
  EXPECT_EQ(run(), std::vector<int64_t>{});
}

// Notes what is summed.
class NotedSums final : public Communicator {
 public:
  explicit NotedSums(const float* values) : values_(values) {}
  std::vector<std::pair<int64_t, int64_t>> taken() { return std::exchange(noted_, {}); }

  int rank() const override { return 0; }
  int size() const override { return 1; }
  Status all_gather(const void*, void*, size_t, Stream) override { return {}; }
  Status all_reduce(void* values, int64_t count, DType, Stream) override {
    noted_.emplace_back(static_cast<float*>(values) - values_, count);
    return {};
  }
  Status reduce_scatter(const void*, void*, int64_t, DType, Stream) override { return {}; }
  Status wait(Stream, std::chrono::milliseconds) override { return {}; }

 private:
  const float* values_;
  std::vector<std::pair<int64_t, int64_t>> noted_;  // of which element on, how many
};

TEST(SumsOfRows, begin_as_soon_as_their_rows_are_complete) {
  using Sums = std::vector<std::pair<int64_t, int64_t>>;
  std::vector<float> dx(26);
  NotedSums ranks(dx.data());
  SumsOfRows sums(view(dx.data(), 13, 2), &ranks, nullptr);
  EXPECT_TRUE(sums.add_up_to(5).ok());
  EXPECT_EQ(ranks.taken(), (Sums{{0, 6}}));
  EXPECT_TRUE(sums.add_up_to(5).ok());
  EXPECT_EQ(ranks.taken(), Sums{});
  EXPECT_TRUE(sums.add_up_to(12).ok());
  EXPECT_EQ(ranks.taken(), (Sums{{6, 6}, {12, 6}}));
  EXPECT_TRUE(sums.add_up_to(13).ok());
  EXPECT_EQ(ranks.taken(), (Sums{{18, 8}}));
}

class Refusals : public testing::Test {
 protected:
  Refusals() {
    bind(&s_);
    s_.statistics = view(memory_, 2, 3);
    bind(&b_);
    b_.lse = view<const float>(memory_, 2);
    b_.dx_fp32 = view(memory_, 2, 4);
    for (Scratch* scratch : {&s_.scratch, &b_.scratch}) *scratch = {scratch_, sizeof scratch_};
  }
  template <class Args>
  void bind(Args* a) {
    a->x = view<const float>(memory_, 2, 4);
    a->w = view<const float>(memory_, 3, 4);
    a->target = view<const int64_t>(targets_, 2);
    a->classes = 8;
  }
  static std::string said(const Status& s) {
    EXPECT_EQ(s.code, Status::kInvalidArgument);
    return s.reason;
  }
  float memory_[16] = {};
  int64_t targets_[2] = {};
  alignas(256) char scratch_[1 << 16];
  Statistics<F32> s_;
  Backward<F32> b_;
};

TEST_F(Refusals, name_what_is_wrong_with_a_shard) {
  s_.first_class = b_.first_class = 6;
  EXPECT_PRED_FORMAT2(IsSubstring, "first_class + V at most classes",
                      said(statistics(s_, nullptr)));
  EXPECT_PRED_FORMAT2(IsSubstring, "first_class + V at most classes", said(backward(b_, nullptr)));
  s_.first_class = -1;
  EXPECT_PRED_FORMAT2(IsSubstring, "first_class must be at least 0", said(statistics(s_, nullptr)));
  s_.classes = int64_t{1} << 31;
  EXPECT_EQ(statistics(s_, nullptr).code, Status::kUnsupported);
}

TEST_F(Refusals, name_statistics_that_do_not_suffice) {
  s_.label_smoothing = 0.1f;
  EXPECT_PRED_FORMAT2(IsSubstring, "needs further statistics", said(statistics(s_, nullptr)));
  s_.statistics = view(memory_, 2, 4);
  EXPECT_PRED_FORMAT2(IsSubstring, "statistics must be [T, 3]", said(statistics(s_, nullptr)));
}

TEST_F(Refusals, name_what_cannot_be_summed_over_ranks) {
  const auto over_one = [&] {
    return run_ranks(1, 60s, [&](Communicator& c) { return backward(b_, &c, nullptr); });
  };
  b_.dx_fp32 = {};
  EXPECT_PRED_FORMAT2(IsSubstring, "dx_fp32 must be given", over_one().reason);
  b_.dx_fp32 = view(memory_, 2, 4);
  b_.dx_fp32.stride[0] = 8;
  EXPECT_PRED_FORMAT2(IsSubstring, "rows without gaps", over_one().reason);
}

TEST_F(Refusals, name_options_of_linear_losses_that_there_are_not) {
  s_.split = Split::kVocabulary;
  EXPECT_EQ(statistics(s_, nullptr).code, Status::kUnsupported);
  s_.split = Split::kRows;
  s_.max_valid_rows = b_.max_valid_rows = 1;
  EXPECT_EQ(statistics(s_, nullptr).code, Status::kUnsupported);
  EXPECT_EQ(backward(b_, nullptr).code, Status::kUnsupported);
}

TEST_F(Refusals, name_a_scratch_that_is_too_small) {
  s_.scratch.bytes = workspace(s_) - 1;
  EXPECT_PRED_FORMAT2(IsSubstring, "scratch is smaller", said(statistics(s_, nullptr)));
}

}  // namespace
}  // namespace tigon::vocab_parallel_linear_cross_entropy
