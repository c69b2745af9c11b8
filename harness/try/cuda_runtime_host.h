// SPDX-License-Identifier: Apache-2.0
// The little of the CUDA runtime that a launcher needs, on the host executor: what <<<...>>>
// becomes and the error that it leaves behind. With nvcc both are CUDA's own.
#pragma once
#include "kernels/device/launch.h"

namespace tigon::tried {
// What a file may define of a signature; null where it does not.
template <class Args>
struct Launchers {
  Status (*run)(const Args&, Stream);
  size_t (*workspace)(const Args&);
  Status (*tune)(const Args&);
};
}  // namespace tigon::tried

#if TIGON_GPU

namespace tigon::tried {
inline void begin_launches() {}
inline Status end_launches(const Status& status) {
  const cudaError_t error = cudaGetLastError();
  if (!status.ok() || error == cudaSuccess) return status;
  return {Status::kLaunchFailed, cudaGetErrorString(error)};
}
}  // namespace tigon::tried

#else

#include <string>

#include "kernels/simt/simt.h"

#define __grid_constant__

using cudaStream_t = tigon::Stream;
enum cudaError_t { cudaSuccess = 0, cudaErrorLaunchFailure = 719 };

namespace tigon::tried {

// The first launch of the call that went wrong.
inline Status& launch_status() {
  static Status status;
  return status;
}

// The array that a __shared__ declaration names.
template <class T>
__forceinline__ T& shared(simt::SharedSite& site) {
  return *static_cast<T*>(simt::shared_array(site, sizeof(T), alignof(T) < 16 ? 16 : alignof(T)));
}

struct Configured {
  LaunchConfig config;

  // kernel<<<...>>>(args...)
  template <class... P>
  auto of(void (*kernel)(P...)) const {
    return [*this, kernel](auto&&... args) {
      const dim3& g = config.grid;
      const Status status = g.x == 0 || g.y == 0 || g.z == 0
                                ? Status{Status::kLaunchFailed,
                                         "<<<...>>> with a grid of 0 blocks, which CUDA refuses"}
                                : launch(config, kernel, std::forward<decltype(args)>(args)...);
      if (launch_status().ok()) launch_status() = status;
    };
  }
};

inline Configured configured(dim3 grid, dim3 block, size_t shared_bytes = 0,
                             Stream stream = nullptr) {
  return {{grid, block, shared_bytes, stream}};
}

// Every second call runs the threads of a kernel in reverse, which shows what the natural order
// hides: a missing barrier, a result that depends on who is first.
inline void begin_launches() {
  static unsigned calls = 0;
  simt::config().os_threads = 1;
  simt::config().schedule =
      ++calls % 2 == 1 ? simt::Schedule::kSequential : simt::Schedule::kReverse;
  simt::reports_reset();
  launch_status() = {};
}

// What the executor saw says more than a status.
inline Status end_launches(const Status& status) {
  static std::string finding;
  if (const auto reports = simt::reports(); !reports.empty()) {
    finding = reports.front().message;
    return {Status::kLaunchFailed, finding.c_str()};
  }
  return launch_status().ok() ? status : launch_status();
}

// Bytes loaded and stored, requests and 32-byte sectors since the last time; 0 where accesses are
// not checked.
inline void take_traffic(double* figures) {
  figures[0] = figures[1] = figures[2] = figures[3] = 0;
  for (const auto& [kernel, c] : simt::counters()) {
    figures[0] += static_cast<double>(c.global_load_bytes);
    figures[1] += static_cast<double>(c.global_store_bytes);
    figures[2] += static_cast<double>(c.global_load_requests + c.global_store_requests);
    figures[3] += static_cast<double>(c.global_load_sectors + c.global_store_sectors);
  }
  simt::counters_reset();
}

}  // namespace tigon::tried

inline cudaError_t cudaGetLastError() {
  const bool ok = tigon::tried::launch_status().ok();
  return ok ? cudaSuccess : cudaErrorLaunchFailure;
}
inline cudaError_t cudaPeekAtLastError() { return cudaGetLastError(); }
inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : tigon::tried::launch_status().reason;
}

__forceinline__ float __expf(float x) { return expf(x); }
__forceinline__ float __logf(float x) { return logf(x); }
__forceinline__ float __fdividef(float a, float b) { return a / b; }

#endif
