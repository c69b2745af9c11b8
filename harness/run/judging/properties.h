// SPDX-License-Identifier: Apache-2.0
// Property cases: which there are, and carrying one out.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "harness/run/check.h"
#include "harness/run/judging/oracle.h"

namespace tigon {

// The properties of a pass: its own and those of every pass.
std::vector<Property> properties_of(const Pass& pass);
std::optional<Property> find_property(const Pass& pass, const std::string& name);

// Names of the properties of every pass of the build, each once, sorted.
std::vector<std::string> property_names();

// Checks the property that the case names: verdict and reason of `result`. Throws Stop.
void check_property(const Problem& problem, CheckResult* result);

}  // namespace tigon
