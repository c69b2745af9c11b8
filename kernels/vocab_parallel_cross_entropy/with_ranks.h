// SPDX-License-Identifier: Apache-2.0
// The loss of a rank with a communicator.
#pragma once
#include "kernels/collective/communicator.h"
#include "kernels/vocab_parallel_cross_entropy/vocab_parallel_cross_entropy.h"

namespace tigon::vocab_parallel_cross_entropy {

// Enqueues statistics(own), an all-gather into `all.statistics`, another into `all.further` where
// that is given, and join(all): loss and lse on every rank. Ranks are in the order of their
// classes. kInvalidArgument where the statistics of `all` are not those of as many ranks; errors of
// the parts as theirs.
template <class P>
Status forward(const Statistics<P>& own, const Join<P>& all, Communicator* ranks, Stream stream) {
  if (all.statistics.size() != own.statistics.size() * ranks->size() ||
      all.further.size() != own.further.size() * ranks->size())
    return invalid(
        "vocab_parallel_cross_entropy: gathered statistics must be [R, T, 3], and further ones "
        "[R, T, 4], of R ranks");
  if (const Status s = statistics(own, stream); !s.ok()) return s;
  const auto gather = [&](const auto& part, const auto& gathered) {
    const auto bytes = static_cast<size_t>(part.size()) * sizeof(float);
    // Not const only for those who gather into it.
    return ranks->all_gather(part.data, const_cast<float*>(gathered.data), bytes, stream);
  };
  if (const Status s = gather(own.statistics, all.statistics); !s.ok()) return s;
  if (own.further)
    if (const Status s = gather(own.further, all.further); !s.ok()) return s;
  return join(all, stream);
}

}  // namespace tigon::vocab_parallel_cross_entropy
