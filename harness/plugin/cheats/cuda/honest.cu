// SPDX-License-Identifier: Apache-2.0
// No cheat: what every judgement here must let pass.
#include "harness/plugin/cheats/cuda/cheat_cuda.h"

tigon_status cheat_run(const tigon_call* call, cudaStream_t stream) {
  cheat::start(cheat::Forward(call), stream);
  return cheat::status();
}
