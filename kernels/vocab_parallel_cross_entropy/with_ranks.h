// SPDX-License-Identifier: Apache-2.0
// The loss of a rank with a communicator.
#pragma once
#include "kernels/collective/gather.h"
#include "kernels/vocab_parallel_cross_entropy/vocab_parallel_cross_entropy.h"

namespace tigon::vocab_parallel_cross_entropy {

// kInvalidArgument where the statistics of `all` are not those of as many ranks as there are.
template <class Own, class P>
Status check_gathered(const Own& own, const Join<P>& all, const Communicator* ranks) {
  if (is_of_all(own.statistics, all.statistics, *ranks) &&
      is_of_all(own.further, all.further, *ranks))
    return {};
  return invalid(
      "vocab_parallel_cross_entropy: gathered statistics must be [R, T, 3], and further ones "
      "[R, T, 4], of R ranks");
}

// Enqueues an all-gather of own.statistics into `all.statistics`, another of own.further into
// `all.further` where that is given, and join(all). Ranks are in the order of their classes.
template <class Own, class P>
Status gather_and_join(const Own& own, const Join<P>& all, Communicator* ranks, Stream stream) {
  if (const Status s = gather(own.statistics, all.statistics, ranks, stream); !s.ok()) return s;
  if (own.further)
    if (const Status s = gather(own.further, all.further, ranks, stream); !s.ok()) return s;
  return join(all, stream);
}

// Enqueues statistics(own) and gather_and_join(): loss and lse on every rank. Errors of the parts
// as theirs.
template <class P>
Status forward(const Statistics<P>& own, const Join<P>& all, Communicator* ranks, Stream stream) {
  if (const Status s = check_gathered(own, all, ranks); !s.ok()) return s;
  if (const Status s = statistics(own, stream); !s.ok()) return s;
  return gather_and_join(own, all, ranks, stream);
}

}  // namespace tigon::vocab_parallel_cross_entropy
