// SPDX-License-Identifier: Apache-2.0
// The ops of this program or library: those of TIGON_OPS, in all their dtypes.
#pragma once
#include <vector>

#include "kernels/call/tigon.h"

namespace tigon::call {

// In the order of TIGON_OPS. Defined by the file that CMake writes from registry.cpp.in.
const std::vector<tigon_op>& all_ops();

}  // namespace tigon::call
