// SPDX-License-Identifier: Apache-2.0
// Where a program's contracts come from, and how one adds to them, e.g. a plug-in library's.
#pragma once
#include <string>
#include <vector>

#include "harness/spec/op_spec.h"

namespace tigon {

// The contracts of all_ops() before anything is added. Defined once per program: by the manifest
// that CMake writes from TIGON_OPS, or by a test with ops of its own.
std::vector<OpSpec> make_contracts();

// Before any case is selected; `op` and `pass` must exist.
void add_implementation(const std::string& op, const std::string& pass, Implementation added);

}  // namespace tigon
