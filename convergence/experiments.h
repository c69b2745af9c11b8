// SPDX-License-Identifier: Apache-2.0
// The run functions in the table of experiments; experiment.h says what they give.
#pragma once
#include "convergence/experiment.h"

namespace tigon::convergence {

std::vector<Finding> run_train(const ExperimentContext& context);
std::vector<Finding> run_8b(const ExperimentContext& context);
std::vector<Finding> run_frontier(const ExperimentContext& context);
std::vector<Finding> run_medusa(const ExperimentContext& context);
std::vector<Finding> run_rms_norm(const ExperimentContext& context);
std::vector<Finding> run_cross_entropy(const ExperimentContext& context);
std::vector<Finding> run_next_action(const ExperimentContext& context);

}  // namespace tigon::convergence
