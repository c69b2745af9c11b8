// SPDX-License-Identifier: Apache-2.0
// The one call of a case that a profiler sees.
#pragma once
#include "harness/run/cases/case.h"

namespace tigon {

// Fills the tensors, calls once so that everything is loaded, and calls again between
// cudaProfilerStart and cudaProfilerStop. Throws DeviceError; std::runtime_error when the
// implementation refuses.
void profiled_call(const Case& c);

// What the profiler is told; nothing in a build without CUDA.
void profiler_start();
void profiler_stop();

}  // namespace tigon
