// SPDX-License-Identifier: Apache-2.0
// Names for stretches of time in a profiler (NVTX); nothing in a build without CUDA.
#pragma once
#include <string>

namespace tigon {

// e.g. {"timed", "rms_norm/forward/..."}: shown as "timed rms_norm/forward/..." in the domain
// tigon.
class ProfilerRange {
 public:
  ProfilerRange(const char* category, const std::string& what);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace tigon
