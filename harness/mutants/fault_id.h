// SPDX-License-Identifier: Apache-2.0
// What a process compares to tell whether a fault is planted.
#pragma once
#include <cstdint>

#include "kernels/signature/dtype.h"  // TIGON_HOST_DEVICE

namespace tigon {

// The hash of a fault's name, so that a kernel compares one number.
struct FaultId {
  uint32_t value = 0;  // 0: none

  TIGON_HOST_DEVICE static constexpr uint32_t hash(const char* name) {
    uint32_t h = 2166136261u;  // FNV-1a
    for (; *name != '\0'; ++name) h = (h ^ static_cast<unsigned char>(*name)) * 16777619u;
    return h;
  }
  TIGON_HOST_DEVICE consteval FaultId(const char* name) : value(hash(name)) {}
};

}  // namespace tigon
