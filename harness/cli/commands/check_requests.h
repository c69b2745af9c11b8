// SPDX-License-Identifier: Apache-2.0
// What the options of tigon check ask for.
#pragma once
#include <vector>

#include "harness/cli/stages.h"
#include "harness/run/check.h"

namespace tigon::cli {

// The requests that the options stand for, each with its cases. Throws UsageError.
std::vector<CheckRequest> requests_of(const CheckOptions& options);

}  // namespace tigon::cli
