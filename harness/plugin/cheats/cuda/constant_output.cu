// SPDX-License-Identifier: Apache-2.0
// The same answer for every input.
#include "harness/plugin/cheats/cuda/cheat_cuda.h"

tigon_status cheat_run(const tigon_call* call, cudaStream_t stream) {
  const cheat::Forward f(call);
  constexpr size_t kSize = sizeof(float);
  if (f.rows == 0) return cheat::kOk;
  cudaMemsetAsync(f.rstd, 0, static_cast<size_t>(f.rows) * kSize, stream);
  cudaMemset2DAsync(f.y, static_cast<size_t>(f.y_stride) * kSize, 0,
                    static_cast<size_t>(f.columns) * kSize, static_cast<size_t>(f.rows), stream);
  return cheat::status();
}
