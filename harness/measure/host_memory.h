// SPDX-License-Identifier: Apache-2.0
// Peak resident memory of this process.
#pragma once
#include <cstdint>
#include <optional>

namespace tigon {

// Watches the peak from its construction on, by resetting the kernel's counter (VmHWM).
class HostPeak {
 public:
  HostPeak();
  // How far the peak rose above what was resident at construction; nothing when the kernel does not
  // say or does not allow the reset.
  std::optional<int64_t> growth_bytes() const;

 private:
  std::optional<int64_t> resident_;
};

}  // namespace tigon
