// SPDX-License-Identifier: Apache-2.0
// Options that swiglu and geglu share.
#pragma once
#include "kernels/signature/signature.h"

namespace tigon {

// Whether gate a and up b, and their gradients, are two tensors [T, F] or the halves of each row of
// one [T, 2F], which then is a (da), and b (db) has no columns.
enum class GateLayout : int { kSeparate, kGateFirst, kUpFirst };

struct GatedOptions {
  GateLayout layout = GateLayout::kSeparate;
  // As in Falcon-H1 (2025).
  float gate_multiplier = 1.0f;  // of the gate, before everything; a float holds the product
  float down_multiplier = 1.0f;  // of y
};

constexpr void gated_options(auto&& f) {
  f(option(&GatedOptions::layout, "layout", {"separate", "gate_first", "up_first"}));
  f(option(&GatedOptions::gate_multiplier, "gate_multiplier"));
  f(option(&GatedOptions::down_multiplier, "down_multiplier"));
}

// Columns of a and da, and of b and db.
constexpr Size gate_columns(Axis features) {
  return {"(layout ? 2F : F)",
          [](const Binding& b, Axis f) { return (b.at("layout") != 0 ? 2 : 1) * b.at(f.symbol); },
          features};
}
constexpr Size up_columns(Axis features) {
  return {"(layout ? 0 : F)",
          [](const Binding& b, Axis f) { return b.at("layout") != 0 ? 0.0 : b.at(f.symbol); },
          features};
}

}  // namespace tigon
