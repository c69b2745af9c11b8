// SPDX-License-Identifier: Apache-2.0
// A reduction over all threads of a cluster, once in a kernel (sm_90). Its end is no barrier of the
// cluster: every block sends its value to the others, whose mbarriers count what has landed.
#pragma once
#include "kernels/device/async.h"
#include "kernels/device/cluster.h"
#include "kernels/device/reduce.h"

namespace tigon {

// Values of all warps of a block and of all blocks of a cluster.
template <class T, int kThreads>
struct ExchangeScratch {
  static_assert(sizeof(T) % 4 == 0);
  T warps[kThreads / 32];
  T blocks[kMaxCluster];
  Mbarrier landed = {};
};

// Before the first cluster_exchange: the other blocks can send.
template <class... Scratch>
TIGON_DEVICE void begin_exchange(Scratch&... scratch) {
  if (cluster_size() == 1) return;
  if (threadIdx.x == 0) {
    (mbarrier_init(&scratch.landed, 1), ...);
    mbarrier_fence_init();
  }
  cluster_sync();
}

// `join` is as in block_join(). Every block gets the same bits. A block waits until all that is
// sent to it has landed, and may end then.
template <int kThreads, class T, class Join>
TIGON_DEVICE T cluster_exchange(T v, const Join& join, ExchangeScratch<T, kThreads>& s) {
  constexpr int kWords = sizeof(T) / 4;
  const unsigned blocks = cluster_size();
  v = block_join<kThreads>(v, join, s.warps);
  if (blocks == 1) return v;
  if (threadIdx.x == 0) mbarrier_arrive_expect(&s.landed, blocks * sizeof(T));
  if (threadIdx.x < blocks) {
    uint32_t words[kWords];
    memcpy(words, &v, sizeof v);
    auto* const to = reinterpret_cast<uint32_t*>(&s.blocks[cluster_rank()]);
    TIGON_UNROLL
    for (int w = 0; w < kWords; ++w) store_async(to + w, words[w], &s.landed, threadIdx.x);
  }
  mbarrier_wait(&s.landed, 0);
  T all = s.blocks[0];
  for (unsigned rank = 1; rank < blocks; ++rank) all = join(all, s.blocks[rank]);
  return all;
}

}  // namespace tigon
