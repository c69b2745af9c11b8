// SPDX-License-Identifier: Apache-2.0
// What an option set and an input set mean for a pass.
#pragma once
#include <optional>

#include "harness/run/cases/case.h"
#include "harness/spec/op_spec.h"

namespace tigon {

// The part of an option set that this pass knows; nullopt when it would repeat the default.
std::optional<OptionSet> options_for(const Pass& pass, const OptionSet& set);

// Is an input set a case of its own for this pass, because one of its inputs differs from that of
// the default?
bool input_set_applies(const Pass& pass, const InputSet& set, const InputSet& plain);

// Is an implementation judged on an input set? What a library or a framework makes of NaN is its
// own.
bool is_judged_on(const Implementation& implementation, const InputSet& set);

}  // namespace tigon
