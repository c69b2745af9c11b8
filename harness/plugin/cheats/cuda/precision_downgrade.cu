// SPDX-License-Identifier: Apache-2.0
// Computes an f32 kernel in bf16.
#include <cuda_bf16.h>

#include "harness/plugin/cheats/cuda/cheat_cuda.h"

namespace {

__global__ void through_bf16(cheat::Forward f) {
  float* y = f.y + blockIdx.x * f.y_stride;
  for (int64_t h = threadIdx.x; h < f.columns; h += cheat::kThreads)
    y[h] = __bfloat162float(__float2bfloat16_rn(y[h]));
}

}  // namespace

tigon_status cheat_run(const tigon_call* call, cudaStream_t stream) {
  const cheat::Forward f(call);
  cheat::start(f, stream);
  if (f.rows > 0) through_bf16<<<static_cast<unsigned>(f.rows), cheat::kThreads, 0, stream>>>(f);
  return cheat::status();
}
