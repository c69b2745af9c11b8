// SPDX-License-Identifier: Apache-2.0
// tigon converge --parts: time and memory of a training step by part, over T and V.
#pragma once
#include <string>
#include <vector>

#include "convergence/converge.h"
#include "convergence/measure_parts.h"
#include "harness/cli/options/command_line.h"
#include "harness/cli/session.h"

namespace tigon::cli {

struct PartsOptions {
  bool asked = false;             // --parts itself
  bool each = false;              // every kernel alone, too
  bool plan = false;              // nothing is run
  bool confirm = false;           // what is planned not to fit is run
  std::vector<std::string> axes;  // -a
  std::string memory;             // --memory
};

// Adds --parts and what belongs to it; returns --parts.
Option add_parts(Command command, PartsOptions* options);

// One step to measure. `impl` is naive, fused, or naive with the kernels that are switched on.
struct PartsCell {
  std::string impl;
  convergence::PartsRequest request;
};

// The cells of a table: the same sizes, every impl.
using PartsTable = std::vector<PartsCell>;

// One table for each dtype, T and V. Throws UsageError.
std::vector<PartsTable> parts_tables(const PartsOptions& options,
                                     const convergence::ConvergeRequest& request);

// Each cell in a child of its own, then its table. Returns the exit code: running out of memory is
// a result.
int parts_stage(Session& session, const std::vector<PartsTable>& tables);

}  // namespace tigon::cli
