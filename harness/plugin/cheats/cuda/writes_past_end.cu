// SPDX-License-Identifier: Apache-2.0
// Writes one element too many.
#include "harness/plugin/cheats/cuda/cheat_cuda.h"

tigon_status cheat_run(const tigon_call* call, cudaStream_t stream) {
  const cheat::Forward f(call);
  cheat::start(f, stream);
  if (f.rows > 0)
    cudaMemsetAsync(f.y + (f.rows - 1) * f.y_stride + f.columns, 0, sizeof(float), stream);
  return cheat::status();
}
