// SPDX-License-Identifier: Apache-2.0
// What a kernel that computes nothing would leave in an output: zeros, a constant, a copy of an
// input. The test data of a contract must tell each from what the oracle says.
#pragma once
#include <vector>

#include "harness/tests/visibility_cases.h"

namespace tigon {

std::vector<VisibilityCheck> trivial_outputs_of(const VisibilityCases& cases);

}  // namespace tigon
