// SPDX-License-Identifier: Apache-2.0
// tigon describe OP --call: a C header for plug-ins.
#pragma once
#include <string>

#include "harness/spec/op_spec.h"

namespace tigon::cli {

// Of each pass a struct with the tensors and options of a tigon_call by name, and the function that
// fills it. It needs tigon.h beside it.
std::string call_header(const OpSpec& op);

}  // namespace tigon::cli
