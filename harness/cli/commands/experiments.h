// SPDX-License-Identifier: Apache-2.0
// The experiments of tigon converge inside a session.
#pragma once
#include <string>
#include <vector>

#include "convergence/experiment.h"
#include "harness/cli/session.h"

namespace tigon::cli {

// Each in a child of its own, then the table of all claims. Returns the exit code: a claim that
// does not hold is a finding and not a failure.
int experiments_stage(Session& session, const std::vector<std::string>& names,
                      const convergence::ExperimentSettings& settings);

// The negative controls, and whether their program was built: throws MissingData.
void require_controls_program();
int controls_stage(Session& session, const convergence::ConvergeRequest& request);

// The same evidence on kernels without a fault, from so many seeds.
int seeds_stage(Session& session, const convergence::ConvergeRequest& request, int seeds);

}  // namespace tigon::cli
