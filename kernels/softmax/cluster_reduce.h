// SPDX-License-Identifier: Apache-2.0
// A reduction over all threads of a cluster through one barrier.
#pragma once
#include "kernels/device/cluster.h"
#include "kernels/device/reduce.h"

namespace tigon::softmax {

// Values of all warps of a cluster, for two reductions: one is read while the next is written.
template <class T, int kThreads>
struct ClusterScratch {
  T values[2][kMaxCluster * (kThreads / 32)];
};

// Before the first reduction: the other blocks' shared memory can be reached.
TIGON_DEVICE void cluster_begin() {
  if (cluster_size() > 1) cluster_sync();
}

// T{} changes no value that it is joined with. Every block gets the same bits. `parity` alternates
// from call to call, 0 first: a thread that passes the next call's barrier has read the values of
// this one. No thread touches another block's memory after the barrier, so a block may end.
template <int kThreads, class T, class Op>
TIGON_DEVICE T cluster_reduce(T v, Op op, ClusterScratch<T, kThreads>& scratch, int parity) {
  constexpr unsigned kWarps = kThreads / 32;
  const unsigned blocks = cluster_size(), lane = threadIdx.x % 32;
  T* const values = scratch.values[parity];
  v = warp_reduce(v, op);
  T* const mine = values + cluster_rank() * kWarps + threadIdx.x / 32;
  if (blocks == 1) {
    if (lane == 0) *mine = v;
    __syncthreads();
  } else {
    if (lane < blocks) *cluster_map(mine, lane) = v;
    cluster_sync();
  }
  const unsigned count = blocks * kWarps;
  T all{};
  for (unsigned i = lane; i < count; i += 32) all = op(all, values[i]);
  return warp_reduce(all, op);
}

}  // namespace tigon::softmax
