// SPDX-License-Identifier: Apache-2.0
// Kernel of fences.h.
#include "kernels/simt/tests/fences.h"

#include "kernels/device/device.h"

namespace tigon::simt_tests {

namespace {

TIGON_DEVICE void hand_over(const Fences& f, Mbarrier* empty) {
  const bool first_lane = threadIdx.x % 32 == 0;
  switch (f.handover) {
    case Handover::kSyncthreads:
      __syncthreads();
      break;
    case Handover::kSyncwarp:
      __syncwarp();
      break;
    case Handover::kClusterSync:
      cluster_sync();
      break;
    case Handover::kMbarrier:
      mbarrier_arrive(empty);
      break;
    case Handover::kLaneArrives:
      __syncwarp();
      if (first_lane) mbarrier_arrive(empty);
      break;
  }
  const bool at_mbarrier =
      f.handover == Handover::kMbarrier || f.handover == Handover::kLaneArrives;
  if (at_mbarrier && threadIdx.x == f.issuer) mbarrier_wait(empty, 0);
}

TIGON_KERNEL(1024) tile_kernel(Fences f, const float* x, float* out) {
  TIGON_SHARED(float4, tile, [kFencedTile / 4]);
  TIGON_SHARED(Mbarrier, full, [1]);
  TIGON_SHARED(Mbarrier, empty, [1]);
  float* const values = reinterpret_cast<float*>(&tile[0]);
  const bool issuer = threadIdx.x == f.issuer;
  if (issuer) {
    mbarrier_init(&full[0], 1);
    mbarrier_init(&empty[0], f.handover == Handover::kLaneArrives ? blockDim.x / 32 : blockDim.x);
    mbarrier_fence_init();
  }
  __syncthreads();
  const auto copy = [&](int k) {
    if (!issuer) return;
    mbarrier_arrive_expect(&full[0], kFencedTile * sizeof(float));
    bulk_copy(values, x + k * kFencedTile, kFencedTile * sizeof(float), &full[0]);
  };
  const auto for_each = [&](const auto& f) {
    for (unsigned i = threadIdx.x; i < kFencedTile; i += blockDim.x) f(i);
  };
  copy(0);
  mbarrier_wait(&full[0], 0);
  if (f.fence == FenceBy::kAllTooEarly) bulk_fence();
  for_each([&](unsigned i) {
    if (f.write) {
      out[i] = x[i];
      values[i] = 0.0f;
    } else {
      out[i] = values[i];
    }
  });
  if (f.fence == FenceBy::kAll || (f.fence == FenceBy::kIssuerTooEarly && issuer)) bulk_fence();
  hand_over(f, &empty[0]);
  if (f.fence == FenceBy::kIssuer && issuer) bulk_fence();
  copy(1);
  mbarrier_wait(&full[0], 1);
  for_each([&](unsigned i) { out[kFencedTile + i] = values[i]; });
}

}  // namespace

Status overwrite_tile(const Fences& f, const float* x, float* out) {
  return launch({.grid = 1, .block = f.threads}, tile_kernel, f, x, out);
}

}  // namespace tigon::simt_tests
