// SPDX-License-Identifier: Apache-2.0
// Kernels of ordering.h.
#include "kernels/simt/tests/ordering.h"

#include "kernels/device/device.h"

namespace tigon::simt_tests {

namespace {

TIGON_KERNEL(1024) touch_kernel(Ordering o, int* word, int* out) {
  const unsigned i = threadIdx.x;
  int v = 0;
  if (o.first == First::kRead) v = word[0];
  const bool then_atomics = o.first == First::kWriteThenAtomics;
  if ((o.first == First::kWrite || then_atomics) && i == o.writer) word[0] = 1;
  if (o.first == First::kAtomic || then_atomics) v = atomicAdd(word, 1);
  out[blockIdx.x * blockDim.x + i] = v;
  switch (o.barrier) {
    case Barrier::kShuffle:
      (void)__shfl_sync(0xffffffffu, v, 0);
      break;
    case Barrier::kSyncwarp:
      __syncwarp();
      break;
    case Barrier::kSyncthreads:
      __syncthreads();
      break;
    case Barrier::kClusterSync:
      cluster_sync();
      break;
    case Barrier::kNone:
      break;
  }
  if (blockIdx.x != o.writer_block || i != o.writer) return;
  if (o.then_atomic)
    atomicAdd(word, 1);
  else
    word[0] = 2;
}

}  // namespace

Status touch(const Ordering& o, int* word, int* out) {
  return launch({.grid = o.blocks, .block = o.threads, .cluster = o.cluster}, touch_kernel, o, word,
                out);
}

}  // namespace tigon::simt_tests
