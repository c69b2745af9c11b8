// SPDX-License-Identifier: Apache-2.0
// tigon mutants --sample: mutants of the kernels that nobody chose.
#pragma once
#include "harness/cli/stages.h"

namespace tigon::cli {

// Draws them, builds the kernels with those that compile, and makes their list the faults of the
// options. Returns the exit code: where it is not 0, a line has said why. Throws UsageError.
int sample_faults(MutantOptions* options);

}  // namespace tigon::cli
