// SPDX-License-Identifier: Apache-2.0
// The loss of a rank behind its part of a linear layer, with a communicator.
#pragma once
#include "kernels/vocab_parallel_cross_entropy/with_ranks.h"
#include "kernels/vocab_parallel_linear_cross_entropy/vocab_parallel_linear_cross_entropy.h"

namespace tigon::vocab_parallel_linear_cross_entropy {

// Enqueues statistics(own) and vocab_parallel_cross_entropy::gather_and_join(): loss and lse on
// every rank.
template <class P>
Status forward(const Statistics<P>& own, const vocab_parallel_cross_entropy::Join<P>& all,
               Communicator* ranks, Stream stream) {
  using vocab_parallel_cross_entropy::check_gathered;
  if (const Status s = check_gathered(own, all, ranks); !s.ok()) return s;
  if (const Status s = statistics(own, stream); !s.ok()) return s;
  return vocab_parallel_cross_entropy::gather_and_join(own, all, ranks, stream);
}

// How many sums dx is cut into: more of them begin sooner, and each has a start of its own. Ranks
// have chunks of other rows, and must add the same ones.
inline constexpr int64_t kSums = 4;

// Sums of dx over ranks, each enqueued beside the stream as soon as its rows are complete there.
class SumsOfRows {
 public:
  SumsOfRows(const View<float, 2>& dx, Communicator* ranks, Stream stream)
      : dx_(dx), ranks_(ranks), stream_(stream) {}

  // Rows [0, end) are complete after what is on the stream.
  Status add_up_to(int64_t end) {
    if (end_of(next_) > end) return {};
    stream_follow(ranks_->beside(), stream_);
    for (; next_ < kSums && end_of(next_) <= end; ++next_) {
      const int64_t first = end_of(next_ - 1), rows = end_of(next_) - first;
      const Status s = ranks_->all_reduce(dx_.data + first * dx_.shape[1], rows * dx_.shape[1],
                                          DType::kF32, ranks_->beside());
      if (!s.ok()) return s;
    }
    return {};
  }

 private:
  int64_t end_of(int64_t sum) const { return dx_.shape[0] * (sum + 1) / kSums; }

  const View<float, 2> dx_;
  Communicator* const ranks_;
  const Stream stream_;
  int64_t next_ = 0;
};

// Enqueues backward(own) and sums of dx_fp32 [T, H] over ranks, whose rows must have no gaps: all
// of dx on every rank. A sum runs beside the products of the chunks behind it.
template <class P>
Status backward(const Backward<P>& own, Communicator* ranks, Stream stream) {
  if (!own.dx_fp32 || !own.dx_fp32.contiguous())
    return invalid(
        "vocab_parallel_linear_cross_entropy: dx_fp32 must be given, rows without gaps, to be "
        "added over ranks");
  SumsOfRows sums(own.dx_fp32, ranks, stream);
  const auto rows_done = [&](int64_t end) { return sums.add_up_to(end); };
  if (const Status s = backward(own, rows_done, stream); !s.ok()) return s;
  if (const Status s = sums.add_up_to(own.dx_fp32.shape[0]); !s.ok()) return s;
  stream_follow(stream, ranks->beside());
  return {};
}

}  // namespace tigon::vocab_parallel_linear_cross_entropy
