// SPDX-License-Identifier: Apache-2.0
// The engines of cuDNN by name, as tigon_find() finds the kernels.
#pragma once
#include "kernels/call/tigon.h"

namespace tigon::cudnn {

// Why this program cannot call them and the cure, in one line; empty where it can.
const char* absent();

// The op of tigon.h, e.g. "rms_norm.forward", by a fused engine; nullptr if there is none.
const tigon_op* find(const char* name, int32_t dtype);

}  // namespace tigon::cudnn
