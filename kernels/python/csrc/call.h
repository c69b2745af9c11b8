// SPDX-License-Identifier: Apache-2.0
// A call of an operator: from the dispatcher's stack to tigon_run() and back.
#pragma once
#include <cstdint>

#include "kernels/python/csrc/pass.h"

namespace tigon::torch_adapter {

using StackValue = uint64_t;  // torch's StableIValue

// Takes arguments from the stack and puts results in their place. Throws std::runtime_error with
// the sentence of the status where the call is wrong; torch makes a RuntimeError of it.
void call(const Pass& pass, const Library& library, StackValue* stack);

}  // namespace tigon::torch_adapter
