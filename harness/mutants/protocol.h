// SPDX-License-Identifier: Apache-2.0
// How the parent tells a child of tigon-mutants which fault to plant.
#pragma once
#include <string>

namespace tigon {

// A request line of child.h with the fault's name added; "" for none.
std::string with_fault(const std::string& request, const std::string& fault);
// The fault of such a line.
std::string fault_of(const std::string& line);

}  // namespace tigon
