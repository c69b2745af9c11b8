// A reduction over all threads of a cluster: each warp sends its part to every block, and a block
// waits until all parts are there. No barrier of the cluster, whose fence would wait for the
// stores and loads of memory that are under way.
#pragma once
#include "kernels/device/async.h"
#include "kernels/device/cluster.h"
#include "kernels/device/reduce.h"

namespace tigon {

// Parts of all warps of a cluster, for two reductions: one is read while the next is written.
template <class T, int kThreads>
struct ClusterScratch {
  T parts[2][kMaxCluster * (kThreads / 32)];
  Mbarrier arrived[2];
};

template <class T, int kThreads>
TIGON_DEVICE ClusterScratch<T, kThreads>& cluster_scratch() {
  using Scratch = ClusterScratch<T, kThreads>;
  TIGON_SHARED(Scratch, scratch, [1]);
  return scratch[0];
}

// Before the first reduction, by all threads.
template <class T, int kThreads>
TIGON_DEVICE void cluster_begin(ClusterScratch<T, kThreads>& scratch) {
  if constexpr (kHasBulkCopy) {
    if (cluster_size() == 1) return;
    if (threadIdx.x == 0) {
      mbarrier_init(&scratch.arrived[0], 1);
      mbarrier_init(&scratch.arrived[1], 1);
      mbarrier_fence_init();
    }
    cluster_sync();
  }
}

// T{} changes no value that it is joined with. Every block gets the same bits. `call` counts the
// reductions from 0: a warp sends its part of a call when it has read those of the call before, so
// whoever has all parts of that call may overwrite the parts two calls back. Nobody's memory is
// touched after its last call.
template <int kThreads, class T, class Op>
TIGON_DEVICE T cluster_reduce(T v, Op op, ClusterScratch<T, kThreads>& scratch, unsigned call) {
  constexpr unsigned kWarps = kThreads / 32;
  const unsigned blocks = cluster_size(), lane = threadIdx.x % 32;
  const unsigned turn = planted("cluster_reduce.one_turn") ? 0 : call % 2;
  T* const parts = scratch.parts[turn];
  T* const mine = parts + cluster_rank() * kWarps + threadIdx.x / 32;
  v = warp_reduce(v, op);
  if (blocks == 1) {
    if (lane == 0) *mine = v;
    if (!planted("cluster_reduce.no_barrier")) __syncthreads();
  } else if constexpr (kHasBulkCopy) {
    Mbarrier* const arrived = &scratch.arrived[turn];
    if (threadIdx.x == 0) mbarrier_arrive_expect(arrived, blocks * kWarps * sizeof(T));
    if (lane < blocks) remote_store(mine, v, arrived, lane);
    if (!planted("cluster_reduce.no_barrier")) mbarrier_wait(arrived, call / 2 % 2);
  }
  const unsigned count = planted("cluster_reduce.other_blocks_lost") ? kWarps : blocks * kWarps;
  T all{};
  for (unsigned i = lane; i < count; i += 32) all = op(all, parts[i]);
  return warp_reduce(all, op);
}

}  // namespace tigon
