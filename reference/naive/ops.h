// SPDX-License-Identifier: Apache-2.0
// The unfused baselines by name, as tigon_find() finds the kernels.
#pragma once
#include "kernels/call/tigon.h"

namespace tigon::naive {

// The op of tigon.h, e.g. "rms_norm.forward", by one library call per primitive step; nullptr if
// there is none. It needs no scratch: its intermediates are allocated on the way.
const tigon_op* find(const char* name, int32_t dtype);

}  // namespace tigon::naive
