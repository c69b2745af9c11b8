// SPDX-License-Identifier: Apache-2.0
// Cases whose tensors are beyond 2^31 elements or 2^32 bytes: sampled rows are compared with the
// oracle, all others bitwise with launches on slices that are small.
#pragma once
#include "harness/run/check.h"

namespace tigon {

// Name of the input set that stands for such a case.
inline constexpr const char* kTiledInputs = "tiled";

// Bounds that tests make small.
struct HugeLimits {
  int64_t slice_elements = int64_t{1} << 28;  // of the largest tensor in a sliced launch
  int64_t boundary_elements = int64_t{1} << 31;
  int random_rows = 64;
  double host_bytes = 0x1p30;  // of all tensors; more is a case for a GPU
};

// Runs the case in this process and fills verdict, reason, outputs and seconds. Throws Stop,
// DeviceError, UsageError.
void check_huge(const Case& c, const HugeLimits& limits, CheckResult* result);

}  // namespace tigon
