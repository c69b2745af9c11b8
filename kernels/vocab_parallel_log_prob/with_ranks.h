// SPDX-License-Identifier: Apache-2.0
// The log-probabilities of a rank with a communicator.
#pragma once
#include "kernels/collective/gather.h"
#include "kernels/vocab_parallel_log_prob/vocab_parallel_log_prob.h"

namespace tigon::vocab_parallel_log_prob {

// Enqueues statistics(own), an all-gather of own.statistics into all.statistics, another of
// own.moment into all.moment where that is given, and join(all): the results on every rank. Ranks
// are in the order of their classes. Errors of the parts as theirs; kInvalidArgument where the
// statistics of `all` are not those of as many ranks as there are.
template <class P>
Status forward(const Statistics<P>& own, const Join<P>& all, Communicator* ranks, Stream stream) {
  if (!is_of_all(own.statistics, all.statistics, *ranks) ||
      !is_of_all(own.moment, all.moment, *ranks))
    return invalid(
        "vocab_parallel_log_prob: gathered statistics must be [R, T, 3], and the moment [R, T], of "
        "R ranks");
  if (const Status s = statistics(own, stream); !s.ok()) return s;
  if (const Status s = gather(own.statistics, all.statistics, ranks, stream); !s.ok()) return s;
  if (own.moment)
    if (const Status s = gather(own.moment, all.moment, ranks, stream); !s.ok()) return s;
  return join(all, stream);
}

}  // namespace tigon::vocab_parallel_log_prob
