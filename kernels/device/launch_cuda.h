// SPDX-License-Identifier: Apache-2.0
// GPU body of launch.h.
#pragma once
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "kernels/device/device_limits.h"
#include "kernels/device/platform.h"

namespace tigon {

// With LaunchConfig::dependent: waits until the previous kernel's writes can be seen. Otherwise,
// and before sm_90, nothing.
TIGON_DEVICE void dependency_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Lets a dependent next kernel start.
TIGON_DEVICE void dependency_launch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

namespace device {

// CUDA allows 48 KB of shared memory, static and dynamic, unless a kernel is told otherwise on each
// device; this remembers what it was told, so that a repeated launch costs a look-up. Up to 24 KB
// need no question: they leave as much for a kernel's static arrays.
inline cudaError_t raise_shared_limit(const void* kernel, size_t bytes) {
  constexpr size_t kDefault = 24 * 1024;
  if (bytes <= kDefault) return cudaSuccess;
  static std::mutex mutex;
  static std::map<std::pair<int, const void*>, size_t> granted;
  int gpu = 0;
  if (const cudaError_t error = cudaGetDevice(&gpu); error != cudaSuccess) return error;
  const std::lock_guard lock(mutex);
  size_t& limit = granted[{gpu, kernel}];
  if (bytes <= limit) return cudaSuccess;
  const cudaError_t error = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (error == cudaSuccess) limit = bytes;
  return error;
}

// Remembered, because the question costs more than a launch.
inline unsigned resident_blocks(const LaunchConfig& c, const void* kernel) {
  using Key = std::tuple<int, const void*, unsigned, size_t>;
  static std::mutex mutex;
  static std::map<Key, unsigned> known;
  int gpu = 0;
  if (cudaGetDevice(&gpu) != cudaSuccess) return 0;
  const std::lock_guard lock(mutex);
  unsigned& blocks = known[Key{gpu, kernel, c.cluster, c.shared_bytes}];
  if (blocks > 0 || raise_shared_limit(kernel, c.shared_bytes) != cudaSuccess) return blocks;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {c.cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(c.cluster);
  config.blockDim = c.block;
  config.dynamicSmemBytes = c.shared_bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int most = 0;
  if (c.cluster > 1) {
    if (cudaOccupancyMaxActiveClusters(&most, kernel, &config) != cudaSuccess) most = 0;
    blocks = static_cast<unsigned>(most) * c.cluster;
  } else {
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, kernel, static_cast<int>(c.block.x),
                                                  c.shared_bytes);
    blocks = static_cast<unsigned>(most * device_limits().multiprocessors);
  }
  (void)cudaGetLastError();  // the launch will meet the same error and say so
  return blocks;
}

template <class... P>
Status launch(const LaunchConfig& c, void (*kernel)(P...), std::type_identity_t<P>... args) {
  cudaLaunchAttribute attributes[2];
  unsigned count = 0;
  if (c.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {c.cluster, 1, 1};
  }
  // Before sm_90 a dependent launch is one like any other.
  if (c.dependent && device_limits().dependent_launch) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = c.grid;
  config.blockDim = c.block;
  config.dynamicSmemBytes = c.shared_bytes;
  config.stream = c.stream;
  config.attrs = attributes;
  config.numAttrs = count;
  cudaError_t error = raise_shared_limit(reinterpret_cast<const void*>(kernel), c.shared_bytes);
  if (error == cudaSuccess) error = cudaLaunchKernelEx(&config, kernel, args...);
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();  // a refused launch is not sticky: the next call must not see it
  return {Status::kLaunchFailed, cudaGetErrorString(error)};
}

}  // namespace device
}  // namespace tigon
