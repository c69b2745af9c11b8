// SPDX-License-Identifier: Apache-2.0
// What the launchers of vocab_parallel_log_prob refuse.
#include <gtest/gtest.h>

#include "kernels/collective/thread_ranks.h"
#include "kernels/vocab_parallel_log_prob/with_ranks.h"

namespace tigon::vocab_parallel_log_prob {
namespace {

using namespace std::chrono_literals;
using testing::IsSubstring;

class Refusals : public testing::Test {
 protected:
  Refusals() {
    s_.logits = view<const float>(memory_, 2, 4);
    s_.target = view<const int64_t>(targets_, 2);
    s_.statistics = view(memory_, 2, 3);
    s_.classes = 8;
    j_.statistics = view<const float>(memory_, 2, 2, 3);
    j_.target = s_.target;
    j_.logp = j_.lse = view(memory_, 2);
    b_.logits = s_.logits;
    b_.target = s_.target;
    b_.lse = b_.dlogp = view<const float>(memory_, 2);
    b_.dlogits = view(memory_, 2, 4);
    b_.classes = 8;
  }
  std::string said(const Status& s) {
    EXPECT_EQ(s.code, Status::kInvalidArgument);
    return s.reason;
  }
  float memory_[16] = {};
  int64_t targets_[2] = {};
  Statistics<F32> s_;
  Join<F32> j_;
  Backward<F32> b_;
};

TEST_F(Refusals, name_what_is_wrong_with_a_shard) {
  s_.first_class = b_.first_class = 5;
  for (const Status& status : {statistics(s_, nullptr), backward(b_, nullptr)})
    EXPECT_PRED_FORMAT2(IsSubstring, "first_class + V at most classes", said(status));
  s_.first_class = -1;
  EXPECT_PRED_FORMAT2(IsSubstring, "first_class must be at least 0", said(statistics(s_, nullptr)));
  s_.first_class = 0;
  s_.classes = 0;
  EXPECT_PRED_FORMAT2(IsSubstring, "classes of all ranks", said(statistics(s_, nullptr)));
  s_.classes = int64_t{1} << 31;
  EXPECT_EQ(statistics(s_, nullptr).code, Status::kUnsupported);
}

TEST_F(Refusals, name_rows_that_overlap_and_a_temperature) {
  s_.logits.stride[0] = 3;
  EXPECT_PRED_FORMAT2(IsSubstring, "rows of logits", said(statistics(s_, nullptr)));
  b_.dlogits.stride[0] = 3;
  EXPECT_PRED_FORMAT2(IsSubstring, "rows of dlogits", said(backward(b_, nullptr)));
  j_.temperature = 0;
  EXPECT_PRED_FORMAT2(IsSubstring, "temperature", said(join(j_, nullptr)));
}

TEST_F(Refusals, name_what_the_entropy_needs) {
  j_.entropy = view(memory_, 2);
  EXPECT_PRED_FORMAT2(IsSubstring, "needs the moment", said(join(j_, nullptr)));
  b_.dentropy = b_.dlogp;
  EXPECT_PRED_FORMAT2(IsSubstring, "takes the entropy", said(backward(b_, nullptr)));
}

TEST_F(Refusals, name_a_group_of_another_size) {
  const Status s = run_ranks(1, 60s, [&](Communicator& c) { return forward(s_, j_, &c, nullptr); });
  EXPECT_PRED_FORMAT2(IsSubstring, "of R ranks", s.reason);
}

}  // namespace
}  // namespace tigon::vocab_parallel_log_prob
