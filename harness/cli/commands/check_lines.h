// SPDX-License-Identifier: Apache-2.0
// The lines and branches of the kernels' sources that cases take.
#pragma once
#include <string>
#include <vector>

#include "harness/cli/session.h"

namespace tigon::cli {

// Runs the cases again over kernels that count (tigon-covered), prints and records a row for each
// file of kernels. Returns kExitOk, or kExitInfrastructure when it cannot; says why. Throws
// UsageError where the program is missing.
int count_lines(Session& session, const std::vector<std::string>& case_ids);

}  // namespace tigon::cli
