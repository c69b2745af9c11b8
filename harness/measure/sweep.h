// SPDX-License-Identifier: Apache-2.0
// Which cells a bench measures: the contracts' sweeps, or the values that the person gives.
#pragma once
#include <string>
#include <vector>

#include "harness/run/check.h"

namespace tigon {

enum class SweepSize { kTraining, kQuick, kDefault, kFull, kPairwise };

// One shape of one pass in one type, and the implementations that are measured side by side.
struct Cell {
  Case c;  // c.impl is that of the first implementation
  std::vector<std::string> implementations;
};

// The cells of a request (its ops, passes, implementations, dtypes, axes, filter, cases, shard;
// tier, executor and jobs do not matter). `host`: the small shapes of AxisPlan::host_sweep.
//   kQuick    bf16, the middle of every sweep
//   kTraining of those, the passes of a training step: of an op with forward_backward that alone
//   kDefault  every combination in bf16 (or the types that are asked for), the middle in the others
//   kFull     every combination in every type
//   kPairwise few in which every two sizes, and every size and type, meet
// Throws UsageError.
std::vector<Cell> sweep_cells(const CheckRequest& request, SweepSize size, bool host);

}  // namespace tigon
