// SPDX-License-Identifier: Apache-2.0
// Names and times of runs.
#pragma once
#include <string>

namespace tigon {

// The time now in UTC with milliseconds, "2026-11-21T07:45:00.123Z".
std::string utc_now();

// A new name of a run, "20261121T074500Z-1a2b3c4d": time of its start in UTC and eight random
// hexadecimal digits; sorts by time and is safe as a file name.
std::string new_run_id();

}  // namespace tigon
