// SPDX-License-Identifier: Apache-2.0
// What the cases that fail have in common and those that pass have not.
#pragma once
#include <string>
#include <vector>

#include "harness/run/cases/case.h"

namespace tigon::cli {

// One of several cases of an op, pass and implementation.
struct JudgedCase {
  Case c;
  bool failed = false;
};

// E.g. "H is no multiple of 8 (1, 33; right at 8, 48)", "casting=gemma", "f16", "T > 64 (65, 127;
// right at 1, 64)": the simplest condition that all failed cases meet and most passed ones do not;
// how many of these do stands behind it. Properties are left out: they compare a kernel with
// itself. Empty for fewer than two of either, and where no condition tells most of them apart.
std::string case_pattern(const std::vector<JudgedCase>& cases);

}  // namespace tigon::cli
