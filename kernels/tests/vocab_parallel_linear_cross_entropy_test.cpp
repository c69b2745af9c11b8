// SPDX-License-Identifier: Apache-2.0
// vocab_parallel_linear_cross_entropy over ranks that are threads, in shards and with options that
// are drawn, against plain loops in double over all classes; refusals.
#include "kernels/vocab_parallel_linear_cross_entropy/vocab_parallel_linear_cross_entropy.h"

#include <gtest/gtest.h>

#include "kernels/collective/thread_ranks.h"
#include "kernels/tests/linear_cross_entropy_problem.h"
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
  using Outputs = typename Base::Outputs;
  using Base::p_;

  // What all ranks get together; loss, lse and dx as the first has them.
  Outputs run_all(const Draw& d) {
    this->make(d.problem);
    std::vector<Outputs> of(static_cast<size_t>(d.ranks()));
    const Status s = run_ranks(d.ranks(), 60s, [&](Communicator& c) {
      const auto rank = static_cast<size_t>(c.rank());
      return run(c, d.first[rank], d.first[rank + 1], &of[rank]);
    });
    EXPECT_TRUE(s.ok()) << s.reason;
    Outputs all = of[0];
    for (size_t rank = 1; rank < of.size(); ++rank) {
      EXPECT_EQ(of[rank].loss, all.loss) << "rank " << rank;
      EXPECT_EQ(of[rank].lse, all.lse) << "rank " << rank;
      all.dw.insert(all.dw.end(), of[rank].dw.begin(), of[rank].dw.end());
      all.dbias.insert(all.dbias.end(), of[rank].dbias.begin(), of[rank].dbias.end());
    }
    return all;
  }

 private:
  template <class T>
  static std::vector<T> part(const std::vector<T>& all, int64_t first, int64_t end) {
    return {all.begin() + first, all.begin() + end};
  }

  static std::vector<float> as_floats(const std::vector<Elem>& values) {
    std::vector<float> all;
    for (const Elem v : values) all.push_back(static_cast<float>(v));
    return all;
  }

  Status run(Communicator& c, int64_t first, int64_t end, Outputs* result) const {
    const int64_t rows = p_.rows, hidden = p_.hidden, width = end - first;
    const auto floats = [](int64_t n) {
      return DeviceArray<float>(std::vector<float>(static_cast<size_t>(n), -1.0f));
    };
    const DeviceArray<Elem> x(this->x_), w(part(this->w_, first * hidden, end * hidden)),
        bias(part(this->bias_, first, end)), dw(part(this->w_, first * hidden, end * hidden));
    const DeviceArray<int64_t> target(this->targets_);
    const DeviceArray<float> dloss(this->upstream_), dx(as_floats(this->x_)),
        dbias = floats(width), held(part(this->held_, first * hidden, end * hidden));
    const DeviceArray<float> own = floats(rows * 3), all = floats(c.size() * rows * 3),
                             further = floats(rows * 4), all_further = floats(c.size() * rows * 4);
    const DeviceArray<float> loss = floats(this->losses()), lse = floats(rows);
    const bool needs_further = p_.options.label_smoothing != 0;
    const auto bind = [&](auto* a) {
      a->x = view<const Elem>(x.data(), rows, hidden);
      a->w = view<const Elem>(w.data(), width, hidden);
      a->target = view<const int64_t>(target.data(), rows);
      if (p_.bias) a->bias = view<const Elem>(bias.data(), width);
      a->first_class = first;
      a->classes = p_.columns;
      a->logits_bytes = p_.rows_per_chunk * ((width + 7) / 8 * 8) * int64_t{sizeof(Elem)};
    };

    Statistics<P> s;
    bind(&s);
    s.statistics = view(own.data(), rows, 3);
    if (needs_further) s.further = view(further.data(), rows, 4);
    s.ignore_index = p_.options.ignore_index;
    s.label_smoothing = p_.options.label_smoothing;
    s.softcap = p_.options.softcap;
    const DeviceBuffer scratch(workspace(s));
    s.scratch = {scratch.data(), scratch.bytes()};
    Join<P> j;
    static_cast<LossOptions&>(j) = p_.options;
    j.classes = p_.columns;
    j.target = s.target;
    j.statistics = view<const float>(all.data(), c.size(), rows, 3);
    if (needs_further) j.further = view<const float>(all_further.data(), c.size(), rows, 4);
    j.loss = view(loss.data(), this->losses());
    j.lse = view(lse.data(), rows);
    const DeviceBuffer of_join(workspace(j));
    j.scratch = {of_join.data(), of_join.bytes()};
    if (const Status status = forward(s, j, &c, nullptr); !status.ok()) return status;

    Backward<P> b;
    bind(&b);
    static_cast<LossOptions&>(b) = p_.options;
    if (p_.columns_per_chunk > 0) {
      b.split = Split::kVocabulary;
      b.logits_bytes = p_.columns_per_chunk * rows * int64_t{sizeof(Elem)};
    }
    b.lse = view<const float>(lse.data(), rows);
    if (p_.upstream) b.dloss = view<const float>(dloss.data(), this->losses());
    if (p_.dx) b.dx_fp32 = view(dx.data(), rows, hidden);
    if (p_.dw == Dw::kElem) b.dw = view(dw.data(), width, hidden);
    if (p_.dw == Dw::kFp32) b.dw_fp32 = view(held.data(), width, hidden);
    if (p_.dw == Dw::kAccum) b.dw_accum = view(held.data(), width, hidden);
    if (p_.bias) b.dbias = view(dbias.data(), width);
    const DeviceBuffer more(workspace(b));
    b.scratch = {more.data(), more.bytes()};
    const Status status = p_.dx ? backward(b, &c, nullptr) : backward(b, nullptr);
    *result = {loss.download(), lse.download(), {}, {}, dbias.download()};
    for (const float v : dx.download()) result->dx.push_back(Elem(v));
    if (p_.dw == Dw::kElem)
      for (const Elem v : dw.download()) result->dw.push_back(static_cast<double>(v));
    else
      for (const float v : held.download()) result->dw.push_back(static_cast<double>(v));
    return status;
  }
};

TYPED_TEST_SUITE(OverRanks, linear_cross_entropy::Policies);

TYPED_TEST(OverRanks, in_drawn_shards_is_the_loss_of_all_classes) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    this->compare(this->run_all(draw(seed)));
    if (testing::Test::HasFailure()) return;
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
