// SPDX-License-Identifier: Apache-2.0
// Runs one case in this process: inputs, oracle, two calls of the implementation over different
// poisons, guards, comparison. Meant for a child process (child.h): it does not survive a kernel
// that crashes or hangs.
#pragma once
#include <string>

#include "harness/run/check.h"

namespace tigon {

// Errors become verdicts. With a folder, the case is saved there (save.h). `fatal` is set when the
// device is unusable from now on.
CheckResult run_case(const Case& c, const std::string& save_folder, bool* fatal);

// Runs the implementation once and reads the counters of the checking executor.
TraceResult trace_case(const Case& c);

}  // namespace tigon
