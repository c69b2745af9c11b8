// SPDX-License-Identifier: Apache-2.0
// Peak resident memory of this process.
#include "harness/measure/host_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace tigon {
namespace {

// A line "Key:   123 kB" of /proc/self/status, in bytes.
std::optional<int64_t> status_bytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key + ":", 0) != 0) continue;
    int64_t kib = 0;
    if (std::istringstream(line.substr(key.size() + 1)) >> kib) return kib * 1024;
  }
  return std::nullopt;
}

}  // namespace

HostPeak::HostPeak() {
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;  // proc(5): sets VmHWM to the current resident size
  if (reset) resident_ = status_bytes("VmRSS");
}

std::optional<int64_t> HostPeak::growth_bytes() const {
  const std::optional<int64_t> peak = status_bytes("VmHWM");
  if (!resident_ || !peak) return std::nullopt;
  return std::max<int64_t>(0, *peak - *resident_);
}

}  // namespace tigon
