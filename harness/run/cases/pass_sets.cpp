// SPDX-License-Identifier: Apache-2.0
// Option sets and input sets of a pass.
#include "harness/run/cases/pass_sets.h"

#include <algorithm>

#include "harness/run/inputs/inputs.h"

namespace tigon {

std::optional<OptionSet> options_for(const Pass& pass, const OptionSet& set) {
  OptionSet known;
  for (const auto& [name, value] : set) {
    const bool is_option =
        std::any_of(pass.options.begin(), pass.options.end(),
                    [&name = name](const OptionInfo& o) { return o.name == name; });
    const bool is_tensor = std::any_of(
        pass.tensors.begin(), pass.tensors.end(),
        [&name = name](const TensorInfo& t) { return t.name == name && t.is_optional; });
    if (is_option || is_tensor) known[name] = value;
  }
  if (known.empty() && !set.empty()) return std::nullopt;
  return known;
}

bool input_set_applies(const Pass& pass, const InputSet& set, const InputSet& plain) {
  return std::any_of(pass.tensors.begin(), pass.tensors.end(), [&](const TensorInfo& t) {
    if (t.role != Role::kIn && t.role != Role::kInOut) return false;
    const InputPlan a = plan_of(set, t.name), b = plan_of(plain, t.name);
    return a.distribution != b.distribution || a.parameters != b.parameters;
  });
}

bool is_judged_on(const Implementation& implementation, const InputSet& set) {
  return !set.nonfinite || !(is_library(implementation) || implementation.is_differentiated);
}

}  // namespace tigon
