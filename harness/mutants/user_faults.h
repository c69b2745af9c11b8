// SPDX-License-Identifier: Apache-2.0
// Faults of a file of the user's, for `tigon mutants --faults FILE`.
#pragma once
#include <string>
#include <vector>

#include "harness/mutants/mutant.h"

namespace tigon {

// The faults of the file, ready to be built: ops, passes and hints are checked, and every change
// has its place in the tree, or in `source` if that is given. Throws UsageError, one line that
// begins with file and line.
std::vector<Mutant> user_faults(const std::string& path, const std::string& source = "");

// The text of such a source. Throws UsageError when there is none.
std::string source_text(const std::string& source);

}  // namespace tigon
