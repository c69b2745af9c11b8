// SPDX-License-Identifier: Apache-2.0
// What the terminal says about a failing case.
#pragma once
#include <string>

#include "harness/run/judging/diagnose.h"

namespace tigon::cli {

// One line with everything, and the line that repeats it.
std::string failure_line(const CheckResult& result);
// The same case with what was found out about it: a few lines.
std::string failure_lines(const CheckResult& result, const Diagnosis& diagnosis);

}  // namespace tigon::cli
