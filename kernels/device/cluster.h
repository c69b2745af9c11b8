// SPDX-License-Identifier: Apache-2.0
// Thread-block clusters (sm_90): blocks that run together and reach each other's shared memory. On
// older GPUs a cluster is one block.
#pragma once
#include "kernels/device/platform.h"

namespace tigon {

inline constexpr unsigned kMaxCluster = 8;  // the largest that every GPU with clusters can place

#if TIGON_GPU

// Rank of this block in its cluster.
TIGON_DEVICE unsigned cluster_rank() {
#if __CUDA_ARCH__ >= 900
  unsigned r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
#else
  return 0;
#endif
}
// Number of blocks in the cluster.
TIGON_DEVICE unsigned cluster_size() {
#if __CUDA_ARCH__ >= 900
  unsigned r;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
  return r;
#else
  return 1;
#endif
}
// Barrier of all threads of the cluster; orders their accesses to shared memory.
TIGON_DEVICE void cluster_sync() {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n\t"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
#else
  __syncthreads();
#endif
}
// The same shared variable of the block with that rank. A block must not exit while a peer still
// uses its shared memory: end with cluster_sync.
template <class T>
TIGON_DEVICE T* cluster_map(T* shared, unsigned rank) {
#if __CUDA_ARCH__ >= 900
  T* r;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(r) : "l"(shared), "r"(rank));
  return r;
#else
  (void)rank;
  return shared;
#endif
}

#else

TIGON_DEVICE unsigned cluster_rank() { return simt::cluster_rank(); }
TIGON_DEVICE unsigned cluster_size() { return simt::cluster_size(); }
TIGON_DEVICE void cluster_sync() { simt::cluster_sync(); }
template <class T>
TIGON_DEVICE T* cluster_map(T* shared, unsigned rank) {
  return static_cast<T*>(simt::cluster_map(const_cast<std::remove_cv_t<T>*>(shared), rank));
}

#endif

}  // namespace tigon
