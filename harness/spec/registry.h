// Adds implementations to the contracts of the build, e.g. those of a plug-in library.
#pragma once
#include <string>

#include "harness/spec/op_spec.h"

namespace tigon {

// Before any case is selected; `op` and `pass` must exist.
void add_implementation(const std::string& op, const std::string& pass, Implementation added);

}  // namespace tigon
