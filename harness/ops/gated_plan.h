// SPDX-License-Identifier: Apache-2.0
// What the contracts of swiglu and geglu share.
#pragma once
#include <limits>
#include <vector>

#include "harness/ops/input_sets.h"
#include "harness/spec/bind.h"
#include "harness/spec/op_spec.h"
#include "harness/spec/properties.h"

namespace tigon {

// largest: of a, where multipliers above 1 would overflow.
inline std::vector<InputSet> gated_inputs(
    double largest = std::numeric_limits<double>::infinity()) {
  std::vector<InputSet> sets = {{"normal", {{"a", "normal"}}},
                                {"wide", {{"a", "normal", {{"scale", 8}}}}},
                                {"saturated", {{"a", "normal", {{"scale", 60}}}}},
                                {"mixed_rows", {{"a", "mixed_rows"}, {"b", "mixed_rows"}}}};
  add_special_rows(&sets, {"a", "b"});
  add_nonfinite(&sets, {"a"}, largest);
  add_upstream(&sets, {"dy"});
  return sets;
}

inline const OptionSet kMultiplied = {{"gate_multiplier", "0.5"}};

// Each layout and multiplier alone, and all at once.
inline std::vector<OptionSet> gated_option_sets() {
  return {{},
          {{"layout", "gate_first"}},
          {{"layout", "up_first"}},
          kMultiplied,
          {{"down_multiplier", "3"}},
          {{"layout", "up_first"}, {"gate_multiplier", "0.875"}, {"down_multiplier", "0.25"}}};
}

using Exponents = std::map<std::string, int>;

// down_multiplier scales the results.
inline Property down_multiplier(Exponents outputs) {
  return scaling("down_multiplier", {}, std::move(outputs), {{"down_multiplier", 1}}, true);
}
// What gate_multiplier multiplies may as well have been multiplied before; da is then scaled.
inline Property gate_multiplier(Exponents outputs) {
  return scaling("gate_multiplier", {{"a", -1}}, std::move(outputs), {{"gate_multiplier", 1}});
}

// Properties with two tensors and with each packed layout.
inline Property of_all_layouts(Property property) {
  return with_options({{}, {{"layout", "gate_first"}}, {{"layout", "up_first"}}},
                      std::move(property));
}

}  // namespace tigon
