// SPDX-License-Identifier: Apache-2.0
// Which launch shape a pass takes for which row length, as its kernels' own tables answer.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/cases/case.h"
#include "kernels/device/launch_table.h"

namespace tigon {

// Rows of first to last elements take one shape of one table.
struct ShapeRange {
  std::string table;
  int64_t first = 0, last = 0;
  LaunchShape shape{};
  bool is_longest = false;  // longer rows take the shape, too

  friend bool operator==(const ShapeRange&, const ShapeRange&) = default;
};

struct PassShapes {
  std::vector<ShapeRange> ranges;   // by row length
  std::vector<LaunchShape> others;  // that only a launch table chooses (`tigon tune`)

  friend bool operator==(const PassShapes&, const PassShapes&) = default;
};

// The axis along which the rows of an op lie.
const Axis& row_axis(const OpSpec& op);

// What the fused implementation asks for a case, whose tensors are aligned but for shift and skew;
// nothing where it refuses the case, or asks no table. Throws DeviceError.
std::optional<LaunchTable::Question> launch_question(const Case& c);

// The same table and shape, or none in both.
bool same_answer(const std::optional<LaunchTable::Question>& a,
                 const std::optional<LaunchTable::Question>& b);

// What launches of the fused implementation ask and take by themselves. No rows are launched: a
// call without tokens asks, too. `aligned`: rows start at multiples of 16 bytes; else every tensor
// is off by another number of elements. Empty where no table is asked. Throws DeviceError.
PassShapes launch_shapes(const OpSpec& op, const Pass& pass, DType dtype, bool aligned);

}  // namespace tigon
