// SPDX-License-Identifier: Apache-2.0
// Reads fault files; README.md beside this file describes the format.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/mutants/mutant.h"

namespace tigon {

// what() is one line: "FILE:LINE: what is wrong; what would be right".
class FaultFileError : public std::runtime_error {
 public:
  FaultFileError(const std::string& file, int line, const std::string& text)
      : std::runtime_error(file + ":" + std::to_string(line) + ": " + text) {}
};

// The faults of one file, in its order.
std::vector<Mutant> read_fault_file(const std::string& path);

// Those of several files. A name may occur once.
std::vector<Mutant> read_fault_files(const std::vector<std::string>& paths);

}  // namespace tigon
