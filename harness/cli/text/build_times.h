// SPDX-License-Identifier: Apache-2.0
// Where the time of a build goes, from ninja's log.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace tigon::cli {

struct BuildTime {
  std::string source;  // "kernels/rope/rope.cu (tigon_rope_fast)"
  double seconds = 0;
};

// The translation units of a build folder of ninja, the slowest first; of one that was compiled
// several times the last time counts, and one that the tree no longer has is left out. Throws
// std::runtime_error when the log cannot be read.
std::vector<BuildTime> build_times(const std::filesystem::path& build);

}  // namespace tigon::cli
