// tigon check --budget: a pairwise covering, as much of it as the time allows.
#pragma once
#include "harness/cli/selection.h"
#include "harness/run/check.h"

namespace tigon::cli {

// The cases of a pairwise covering that the request's filter, shard and the exclusion leave.
std::vector<Case> budgeted_cases(const CheckRequest& request);

// Runs request.cases in order until `seconds` are over and prints which share of all pairs of
// values has met. What no time was left for is named and not counted.
void run_budgeted(const CheckRequest& request, double seconds, const CheckSink& sink);

// Takes the cases that are too large for the host executor out of a request; their results say why.
std::vector<CheckResult> take_too_large(const Selection& selection, CheckRequest* request);

}  // namespace tigon::cli
