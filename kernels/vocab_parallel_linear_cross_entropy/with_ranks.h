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

// Enqueues backward(own) and an all-reduce of dx_fp32 [T, H], whose rows must have no gaps: all of
// dx on every rank.
template <class P>
Status backward(const Backward<P>& own, Communicator* ranks, Stream stream) {
  if (!own.dx_fp32 || !own.dx_fp32.contiguous())
    return invalid(
        "vocab_parallel_linear_cross_entropy: dx_fp32 must be given, rows without gaps, to be "
        "added over ranks");
  if (const Status s = backward(own, stream); !s.ok()) return s;
  return ranks->all_reduce(own.dx_fp32.data, own.dx_fp32.size(), DType::kF32, stream);
}

}  // namespace tigon::vocab_parallel_linear_cross_entropy
