// SPDX-License-Identifier: Apache-2.0
// The range that `ncu --profile-from-start off` profiles.
#include <cuda_profiler_api.h>

#include "harness/measure/profiled_call.h"

namespace tigon {

void profiler_start() { cudaProfilerStart(); }
void profiler_stop() { cudaProfilerStop(); }

}  // namespace tigon
