// SPDX-License-Identifier: Apache-2.0
// Cases of a check that are not run, and say so.
#pragma once
#include <vector>

#include "harness/cli/options/selection.h"
#include "harness/run/check.h"

namespace tigon::cli {

// Takes out of a request the cases that are too large for the host executor, and those in which a
// library that is not asked for by name is known to miss the budget (OpSpec). Prints how many, and
// why; their results are skips with that reason and the line that runs them all the same.
std::vector<CheckResult> take_left_out(const Selection& selection, CheckRequest* request);

}  // namespace tigon::cli
