// SPDX-License-Identifier: Apache-2.0
// log_prob where the logits of a call are some classes of all.
#pragma once
#include "kernels/log_prob/log_prob.h"
#include "kernels/loss/shard.h"

namespace tigon::log_prob {

// Statistics of a token, of some classes.
enum Statistic : int {
  kMax,     // largest logit; the least float where there is no class
  kSum,     // sum of exp((x - max) / temperature)
  kTarget,  // the target's logit; NaN where it is none of these classes
  kStatistics,
};

// Where the statistics of rows are.
template <class Float>
struct Statistics {
  Float* few = nullptr;  // [T, kStatistics]
  Float* moment =
      nullptr;  // [T], for the entropy: sum of 2^d d, d = (x - max) log2(e) / temperature
};

// What forward and backward enqueue, for a shard, whose T and V may be 0; nothing is checked.
// Forward writes statistics in place of results. An ignored row has those of no class.
template <class P>
Status forward_of_shard(const Forward<P>& args, const Shard& shard,
                        const Statistics<float>& statistics, Stream stream);
template <class P>
Status backward_of_shard(const Backward<P>& args, const Shard& shard, Stream stream);

}  // namespace tigon::log_prob
