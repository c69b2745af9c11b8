// SPDX-License-Identifier: Apache-2.0
// Random cases of the contracts, for soaking.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "harness/run/check.h"

namespace tigon {

struct SoakRequest {
  std::string op;
  DType dtype = DType::kF32;
  CheckRequest choice;  // passes, implementations (none: all but libraries) and sizes to draw from
  // Bound of the product of all axes; 0: 2^13 on the host, 2^22 on a GPU.
  int64_t most_elements = 0;
};

// One case per seed in [first, first + count), each with a random pass, shape, option set, input
// set, address shift and row gap of the contract; cases of one pass and implementation together.
// The same request gives the same cases everywhere. Throws UsageError.
std::vector<Case> soak_cases(const SoakRequest& request, uint64_t first, int count);

}  // namespace tigon
