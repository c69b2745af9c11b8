// SPDX-License-Identifier: Apache-2.0
// Launching a kernel: a function call, the same on a GPU and on the host executor.
#pragma once
#include <cstddef>
#include <utility>

#include "kernels/device/integer.h"
#include "kernels/device/platform.h"

namespace tigon {

struct LaunchConfig {
  dim3 grid, block;
  size_t shared_bytes = 0;  // dynamic
  Stream stream = nullptr;
  unsigned cluster = 1;    // blocks per cluster; divides grid.x
  bool dependent = false;  // may start before the previous kernel of the stream has ended; the
                           // kernel calls dependency_wait() before it touches that kernel's output
};

}  // namespace tigon

#if TIGON_GPU
#include "kernels/device/launch_cuda.h"
#else
#include "kernels/device/launch_host.h"
#endif

namespace tigon {

// Blocks of this shape that the device runs at once, whatever the grid of `config`; whole clusters,
// at least one.
template <class... P>
unsigned resident_blocks(const LaunchConfig& config, void (*kernel)(P...)) {
  const unsigned blocks = device::resident_blocks(config, reinterpret_cast<const void*>(kernel));
  return blocks > config.cluster ? blocks : config.cluster;
}

// Launches kernel(args...); an empty grid is nothing to do. On the host this returns when the
// kernel has finished, and a finding of the executor is an error whose reason is its text.
template <class... P, class... A>
Status launch(const LaunchConfig& config, void (*kernel)(P...), A&&... args) {
  const dim3& g = config.grid;
  if (g.x == 0 || g.y == 0 || g.z == 0) return {};
  return device::launch(config, kernel, static_cast<P>(std::forward<A>(args))...);
}

}  // namespace tigon
