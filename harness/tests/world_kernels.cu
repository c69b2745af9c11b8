// SPDX-License-Identifier: Apache-2.0
// y = 2 x and ways in which a kernel can take its device down.
#undef NDEBUG  // one of them is a failed assertion
#include "harness/tests/world_kernels.h"

#include <cassert>

#include "kernels/device/device.h"

namespace tigon::world {
namespace {

constexpr int kThreads = 64;

#if !TIGON_GPU
// Each level needs its 256 bytes after the next one has returned.
__attribute__((noinline)) int descend(int levels, volatile int* sink) {
  volatile int frame[64];
  for (int i = 0; i < 64; ++i) frame[i] = levels + i;
  if (levels == 0) return *sink;
  return descend(levels - 1, frame) + frame[levels & 63];
}
#endif

TIGON_KERNEL(kThreads)
twice_kernel(const float* x, float* y, int64_t n, DeviceFault fault) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  float v = i < n ? x[i] : 0.0f;
  switch (fault) {
    case DeviceFault::kIllegalAddress:
      if (i == 0) *reinterpret_cast<volatile float*>(static_cast<uintptr_t>(n) & 4) = v;
      break;
    case DeviceFault::kMisaligned:
      if (i == 0) *reinterpret_cast<volatile float*>(reinterpret_cast<uintptr_t>(y) + 1) = v;
      break;
    case DeviceFault::kAssert:
      assert(i > 0 && "wings");
      break;
    case DeviceFault::kTrap:
      if (i == 0) __trap();
      break;
    case DeviceFault::kHang:
      // Through memory: nvcc takes a loop over a volatile local out.
      for (const volatile float* forever = x; *forever == *forever;) {
      }
      break;
    case DeviceFault::kDeadlock:
      if (threadIdx.x == 0)
        v += __shfl_sync(0xffffffffu, v, 0);
      else
        __syncthreads();
      break;
#if !TIGON_GPU
    case DeviceFault::kStackOverflow: {
      volatile int sink = static_cast<int>(n);
      v += static_cast<float>(descend(1 << 30, &sink));
      break;
    }
#endif
    default:
      break;
  }
  if (i < n) y[i] = 2.0f * v;
}

}  // namespace

Status twice(const float* x, float* y, int64_t n, DeviceFault fault, Stream stream) {
  if (n == 0) return {};
  const auto blocks = static_cast<unsigned>(ceil_div(n, int64_t{kThreads}));
  const unsigned threads = fault == DeviceFault::kTooManyThreads ? 4096 : kThreads;
  return launch({dim3(blocks), dim3(threads), 0, stream}, twice_kernel, x, y, n, fault);
}

}  // namespace tigon::world
