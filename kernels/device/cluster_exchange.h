// A reduction over all threads of a cluster without a barrier of the cluster (sm_90): every block
// sends its value to the others, whose mbarriers count what has landed.
#pragma once
#include "kernels/device/async.h"
#include "kernels/device/cluster.h"
#include "kernels/device/reduce.h"

namespace tigon {

// Values of all warps of a block and of all blocks of a cluster, for two reductions: one is read
// while the next is written. Beside it, Mbarrier landed[2].
template <class T, int kThreads>
struct ExchangeScratch {
  static_assert(sizeof(T) % 4 == 0);
  T warps[2][kThreads / 32];
  T blocks[2][kMaxCluster];
};

// By one thread, before cluster_begin.
TIGON_DEVICE void init_exchange(Mbarrier* landed) {
  mbarrier_init(landed, 1);
  mbarrier_init(landed + 1, 1);
  mbarrier_fence_init();
}

// join as block_join() has it. Every block gets the same bits. `calls` have been made before.
// Nothing of a block is overwritten too early: who sends for the next call but one has the values
// of the next, for which every warp has read those of this one. Nor does a block end before what is
// sent to it has landed.
template <int kThreads, class T, class Join>
TIGON_DEVICE T cluster_exchange(T v, const Join& join, ExchangeScratch<T, kThreads>& s,
                                Mbarrier* landed, unsigned calls) {
  constexpr int kWords = sizeof(T) / 4;
  const unsigned blocks = cluster_size();
  const unsigned turn = planted("cluster_reduce.one_turn") ? 0 : calls % 2;
  v = block_join<kThreads>(v, join, s.warps[turn]);
  if (blocks == 1 || planted("cluster_reduce.other_blocks_lost")) return v;
  landed += calls % 2;
  if (threadIdx.x == 0) mbarrier_arrive_expect(landed, blocks * sizeof(T));
  if (threadIdx.x < blocks) {
    uint32_t words[kWords];
    memcpy(words, &v, sizeof v);
    auto* const to = reinterpret_cast<uint32_t*>(&s.blocks[turn][cluster_rank()]);
    TIGON_UNROLL
    for (int w = 0; w < kWords; ++w) store_async(to + w, words[w], landed, threadIdx.x);
  }
  if (!planted("cluster_exchange.not_awaited")) mbarrier_wait(landed, calls / 2 % 2);
  T all = s.blocks[turn][0];
  for (unsigned rank = 1; rank < blocks; ++rank) all = join(all, s.blocks[turn][rank]);
  return all;
}

}  // namespace tigon
