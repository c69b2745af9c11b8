// SPDX-License-Identifier: Apache-2.0
// Tensors of a call that is not run: they have addresses that nobody follows.
#pragma once
#include "harness/run/cases/case.h"

namespace tigon {

// The tensors of a case, as memory/device_case.h places them: off their alignment by shift and
// skew, rows `gap` apart. Behind them is the workspace, of no size yet.
Bound bound_without_memory(const Case& c, const OpSpec& op, const Pass& pass);

}  // namespace tigon
