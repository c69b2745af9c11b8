// Where the time of a build goes, from ninja's log.
#pragma once
#include <string>
#include <vector>

namespace tigon::cli {

struct BuildTime {
  std::string source;  // "kernels/rope/rope.cu (tigon_rope_fast)"
  double seconds = 0;
};

// The translation units of a .ninja_log, the slowest first; of one that was compiled several times
// the last time counts. Throws std::runtime_error when the log cannot be read.
std::vector<BuildTime> build_times(const std::string& log);

}  // namespace tigon::cli
