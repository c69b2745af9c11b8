// SPDX-License-Identifier: Apache-2.0
// Profiler ranges in a build without CUDA.
#include "kernels/device/nvtx.h"

namespace tigon {

ProfilerRange::ProfilerRange(const char*, const std::string&) {}
ProfilerRange::~ProfilerRange() = default;

}  // namespace tigon
