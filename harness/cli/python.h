// SPDX-License-Identifier: Apache-2.0
// Commands that leave a part of their work to the tree's Python.
#pragma once
#include <string>
#include <vector>

namespace tigon::cli {

// Runs a module to its end: `words` are its name and arguments, `packages` the folders from the
// root of the tree that it imports from. Returns its exit code, kExitInfrastructure when it crashed
// or cannot be started; `needs` says what is missing then.
int run_python(const std::vector<std::string>& words, const std::vector<std::string>& packages,
               const std::string& needs);

}  // namespace tigon::cli
