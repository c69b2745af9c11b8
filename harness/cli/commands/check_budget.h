// SPDX-License-Identifier: Apache-2.0
// tigon check --budget: a pairwise covering, as much of it as the time allows.
#pragma once
#include "harness/run/check.h"

namespace tigon::cli {

// The cases of a pairwise covering that the request's filter, shard and the exclusion leave.
std::vector<Case> budgeted_cases(const CheckRequest& request);

// Runs request.cases in order until `seconds` are over and prints which share of all pairs of
// values has met. What no time was left for is named and not counted.
void run_budgeted(const CheckRequest& request, double seconds, const CheckSink& sink);

}  // namespace tigon::cli
