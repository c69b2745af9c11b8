// SPDX-License-Identifier: Apache-2.0
// The fastest shape of one cell's launch table.
#pragma once
#include <optional>

#include "harness/measure/halving.h"
#include "harness/run/cases/case.h"
#include "kernels/device/launch_table.h"

namespace tigon {

struct Tuned {
  LaunchTable::Key key;
  size_t shapes = 0;              // that could be taken
  LaunchShape before{}, after{};  // the kernel's own rule, the fastest
  double before_s = 0, after_s = 0;
};

// Measures every shape that the last launch of this case could take, in turns, on this device.
// Nothing when its kernel has no table, or one shape only. Throws DeviceError.
std::optional<Tuned> tune_cell(const Case& c, const HalvingRule& rule = {});

}  // namespace tigon
