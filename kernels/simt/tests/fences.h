// SPDX-License-Identifier: Apache-2.0
// A kernel in which all threads touch a tile of shared memory, and one asks for a bulk copy over
// it, with some fence and some barrier between.
#pragma once
#include "kernels/signature/status.h"

namespace tigon::simt_tests {

enum class FenceBy {
  kNobody,
  kAllTooEarly,     // before they touch the tile
  kAll,             // after it
  kIssuerTooEarly,  // after its own access, before the barrier
  kIssuer,          // after the barrier
};
enum class Handover {
  kSyncthreads,
  kSyncwarp,  // for one warp
  kClusterSync,
  kMbarrier,     // all arrive, the issuer waits
  kLaneArrives,  // after __syncwarp the first lane of each warp arrives, the issuer waits
};

struct Fences {
  bool write = false;  // the threads write the tile, else they read it
  FenceBy fence = FenceBy::kNobody;
  Handover handover = Handover::kSyncthreads;
  unsigned threads = 64, issuer = 0;
};

inline constexpr int kFencedTile = 256;
// out[i] = x[i] for two copies of the tile, one after the other: 2 * kFencedTile elements.
Status overwrite_tile(const Fences& f, const float* x, float* out);

}  // namespace tigon::simt_tests
