// SPDX-License-Identifier: Apache-2.0
// Sets the input to 0, for which the answer is 0: a reference that runs afterwards agrees.
#include "harness/plugin/cheats/cuda/cheat_cuda.h"

tigon_status cheat_run(const tigon_call* call, cudaStream_t stream) {
  const cheat::Forward f(call);
  constexpr size_t kSize = sizeof(float);
  if (f.rows > 0)
    cudaMemset2DAsync(const_cast<float*>(f.x), static_cast<size_t>(f.x_stride) * kSize, 0,
                      static_cast<size_t>(f.columns) * kSize, static_cast<size_t>(f.rows), stream);
  cheat::start(f, stream);
  return cheat::status();
}
