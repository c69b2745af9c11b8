// What a launcher needs to know of the current device to choose the shape of a launch.
#pragma once
#include <cstddef>

#include "kernels/device/launch_table.h"
#include "kernels/device/platform.h"

namespace tigon {

struct DeviceLimits {
  size_t shared_per_block = 232448;           // bytes that a launch may ask for
  size_t shared_per_multiprocessor = 233472;  // of which the system takes 1 KB per block
  bool clusters = true;
};

#if TIGON_GPU
inline DeviceLimits device_limits() {
  int device = 0, per_block = 0, per_multiprocessor = 0, major = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&per_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  cudaDeviceGetAttribute(&per_multiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  return {static_cast<size_t>(per_block), static_cast<size_t>(per_multiprocessor), major >= 9};
}
#else
inline DeviceLimits device_limits() { return {}; }  // the host executor's, which are an H200's
#endif

// What every device from sm_80 on has, less 3 KB for static arrays. Asking for limits costs time.
inline constexpr size_t kLeastSharedPerBlock = 96 * 1024;

inline bool has_clusters_for(const LaunchShape& shape) {
  return shape.cluster == 1 || device_limits().clusters;
}

}  // namespace tigon
