// The fastest shape of one cell's launch table.
#pragma once
#include <optional>

#include "harness/measure/halving.h"
#include "harness/run/case.h"
#include "kernels/device/launch_table.h"

namespace tigon {

struct Tuned {
  LaunchTable::Key key;
  size_t shapes = 0;             // that hold the row
  size_t before = 0, after = 0;  // indices in the kernel's table
  double before_s = 0, after_s = 0;
};

// Measures every shape that holds the row of this case, in turns, on this device. Nothing when its
// kernel has no table, or one shape only. Throws DeviceError.
std::optional<Tuned> tune_cell(const Case& c, const HalvingRule& rule = {});

}  // namespace tigon
