// SPDX-License-Identifier: Apache-2.0
// y = 2 x, with a fault of the device in one of its sizes.
#pragma once
#include <cstdint>

#include "kernels/signature/status.h"

namespace tigon::world {

enum class DeviceFault {
  kNone,
  kIllegalAddress,  // a sticky error on a GPU
  kMisaligned,      // the same; a CPU does not mind
  kAssert,
  kTrap,  // an illegal instruction
  kHang,
  kDeadlock,        // lanes of a warp wait for one another at different places
  kStackOverflow,   // of the host executor's thread; nothing on a GPU
  kTooManyThreads,  // a launch that the device refuses
};

// n elements, in device memory.
Status twice(const float* x, float* y, int64_t n, DeviceFault fault, Stream stream);

}  // namespace tigon::world
