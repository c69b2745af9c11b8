// SPDX-License-Identifier: Apache-2.0
// Sizes of live device allocations, for MemoryStats and for device_free.
#pragma once
#include <algorithm>
#include <cstddef>
#include <mutex>
#include <unordered_map>

#include "kernels/device/runtime.h"

namespace tigon::device {

class MemoryLedger {
 public:
  void add(void* p, size_t bytes) {
    const std::lock_guard lock(mutex_);
    sizes_[p] = bytes;
    stats_.current += bytes;
    stats_.high_water = std::max(stats_.high_water, stats_.current);
    ++stats_.allocations;
  }
  // Size of a live allocation, which is forgotten; throws DeviceError for any other address.
  size_t remove(void* p) {
    const std::lock_guard lock(mutex_);
    const auto it = sizes_.find(p);
    if (it == sizes_.end()) throw DeviceError("device_free: the address was not allocated here");
    const size_t bytes = it->second;
    sizes_.erase(it);
    stats_.current -= bytes;
    return bytes;
  }
  // The live allocation that the address lies in; throws DeviceError when there is none.
  DeviceRange range_of(const void* address) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [p, bytes] : sizes_)
      if (address >= p && address < static_cast<const char*>(p) + std::max<size_t>(bytes, 1))
        return {p, bytes};
    throw DeviceError("device_range_of: the address was not allocated here");
  }
  MemoryStats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_high_water() {
    const std::lock_guard lock(mutex_);
    stats_.high_water = stats_.current;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<void*, size_t> sizes_;
  MemoryStats stats_;
};

}  // namespace tigon::device
