// SPDX-License-Identifier: Apache-2.0
// Launches nothing, and hopes that the right answer is still in the output.
#include "harness/plugin/cheats/cuda/cheat_cuda.h"

tigon_status cheat_run(const tigon_call*, cudaStream_t) { return cheat::kOk; }
