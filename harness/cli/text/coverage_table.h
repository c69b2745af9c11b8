// SPDX-License-Identifier: Apache-2.0
// What `tigon check --coverage` prints.
#pragma once
#include <vector>

#include "harness/run/judging/coverage.h"

namespace tigon::cli {

// Per file of kernels: those that were launched, and the pairs of a path and a value; then what was
// not.
void print_coverage(const std::vector<Coverage::Row>& rows);

}  // namespace tigon::cli
