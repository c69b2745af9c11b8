// Cases of a check that are not run, and say so.
#pragma once
#include <vector>

#include "harness/cli/selection.h"
#include "harness/run/check.h"

namespace tigon::cli {

// Takes the cases that are too large for the host executor out of a request; their results say why.
std::vector<CheckResult> take_too_large(const Selection& selection, CheckRequest* request);

}  // namespace tigon::cli
