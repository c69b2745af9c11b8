// SPDX-License-Identifier: Apache-2.0
// How the parent tells a child of tigon-mutants which fault to plant, and what it hears of faults.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tigon {

// A request line of child.h with the fault's name added; "" for none.
std::string with_fault(const std::string& request, const std::string& fault);
// The fault of such a line.
std::string fault_of(const std::string& line);

// The line that answers a case, with the faults (FaultId) whose places it has passed.
std::string with_reached(const std::string& answer, const std::vector<uint32_t>& faults);
std::vector<uint32_t> reached_of(const std::string& line);

}  // namespace tigon
