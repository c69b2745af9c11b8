// SPDX-License-Identifier: Apache-2.0
// The plan of `tigon check`: which cases one implementation of a pass gets.
#pragma once
#include <algorithm>
#include <vector>

#include "harness/run/cases/case.h"
#include "harness/run/cases/chosen.h"

namespace tigon {

// A size that each axis has once: more than 16 bits count, and more rows than a grid has blocks in
// y.
inline constexpr int64_t kLongAxis = 65535 + 3;
inline bool has_long_axis(const Case& c) {
  return std::any_of(c.axes.begin(), c.axes.end(),
                     [](const auto& axis) { return axis.second == kLongAxis; });
}

// No case twice. `launches`: with one for every launch shape, which the device is asked for (throws
// DeviceError).
std::vector<Case> planned_cases(const ChosenPass& chosen, const CheckRequest& request,
                                const Implementation& impl, DType dtype, bool launches);

}  // namespace tigon
