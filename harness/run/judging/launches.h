// SPDX-License-Identifier: Apache-2.0
// Which kernels a case launches, without running it. Host side.
#pragma once
#include <string>
#include <vector>

#include "harness/run/cases/case.h"

namespace tigon {

// By name, each once; none where the fused implementation refuses the case, and on a GPU.
std::vector<std::string> launches_of(const Case& c);

}  // namespace tigon
