// SPDX-License-Identifier: Apache-2.0
// What a launcher needs to know of the current device to choose the shape of a launch.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>

#include "kernels/device/launch_table.h"
#include "kernels/device/platform.h"
#if !TIGON_GPU
#include "kernels/simt/model.h"
#endif

namespace tigon {

struct DeviceLimits {
  int multiprocessors;
  size_t shared_per_block;                       // dynamic, in bytes, that a launch may ask for
  size_t shared_per_multiprocessor;              // with what the system takes for each block
  size_t reserved_per_block;                     // what it takes
  bool clusters, bulk_copies, dependent_launch;  // from sm_90 on
};

// In the environment: kAsSm80 gives any device the launch paths of a GPU before sm_90, for tests.
inline constexpr char kAsVariable[] = "TIGON_AS", kAsSm80[] = "sm_80";
inline bool is_as_sm_80() {
  const char* const as = std::getenv(kAsVariable);
  return as != nullptr && std::string_view(as) == kAsSm80;
}

// What an A100 has of it.
constexpr DeviceLimits before_sm_90(DeviceLimits limits) {
  limits.clusters = limits.bulk_copies = limits.dependent_launch = false;
  limits.shared_per_block = std::min(limits.shared_per_block, size_t{163} * 1024);
  limits.shared_per_multiprocessor = std::min(limits.shared_per_multiprocessor, size_t{164} * 1024);
  return limits;
}

#if TIGON_GPU
namespace device {

inline DeviceLimits ask_limits(int gpu) {
  const auto ask = [gpu](cudaDeviceAttr attribute) {
    int value = 0;
    cudaDeviceGetAttribute(&value, attribute, gpu);
    return value;
  };
  const auto bytes = [&](cudaDeviceAttr attribute) { return static_cast<size_t>(ask(attribute)); };
  const bool sm_90 = ask(cudaDevAttrComputeCapabilityMajor) >= 9;
  const DeviceLimits limits = {
      .multiprocessors = std::max(ask(cudaDevAttrMultiProcessorCount), 1),
      .shared_per_block = bytes(cudaDevAttrMaxSharedMemoryPerBlockOptin),
      .shared_per_multiprocessor = bytes(cudaDevAttrMaxSharedMemoryPerMultiprocessor),
      .reserved_per_block = bytes(cudaDevAttrReservedSharedMemoryPerBlock),
      .clusters = sm_90,
      .bulk_copies = sm_90,
      .dependent_launch = sm_90};
  return is_as_sm_80() ? before_sm_90(limits) : limits;
}

}  // namespace device

// Asks the driver once per device. Without a device a launch will say so.
inline const DeviceLimits& device_limits() {
  static std::mutex mutex;
  static std::map<int, DeviceLimits> known;  // its elements stay where they are
  int gpu = 0;
  cudaGetDevice(&gpu);
  const std::lock_guard lock(mutex);
  const auto found = known.find(gpu);
  return found != known.end() ? found->second
                              : known.emplace(gpu, device::ask_limits(gpu)).first->second;
}
#else
inline const DeviceLimits& device_limits() {
  static constexpr DeviceLimits kModel = {
      .multiprocessors = simt::kMultiprocessors,
      .shared_per_block = simt::kSharedPerBlock,
      .shared_per_multiprocessor = simt::kSharedPerMultiprocessor,
      .reserved_per_block = simt::kReservedSharedPerBlock,
      .clusters = true,
      .bulk_copies = true,
      .dependent_launch = true};
  static const DeviceLimits chosen = is_as_sm_80() ? before_sm_90(kModel) : kModel;
  return chosen;
}
#endif

// Most bytes of dynamic shared memory of a block where `blocks` like it share a multiprocessor;
// each has so many bytes of its own beside them.
inline size_t shared_room(int blocks, size_t beside) {
  const DeviceLimits& limits = device_limits();
  const size_t part = limits.shared_per_multiprocessor / static_cast<size_t>(blocks);
  return std::min(limits.shared_per_block, part - limits.reserved_per_block) - beside;
}

inline bool has_clusters_for(const LaunchShape& shape) {
  return shape.cluster == 1 || device_limits().clusters;
}

}  // namespace tigon
