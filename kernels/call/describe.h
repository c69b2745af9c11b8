// SPDX-License-Identifier: Apache-2.0
// An op as JSON.
#pragma once
#include <string>

#include "kernels/call/erase.h"

namespace tigon::call {

std::string describe(const tigon_op& op, const OpState& state);

}  // namespace tigon::call
