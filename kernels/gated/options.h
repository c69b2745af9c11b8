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
  float gate_multiplier = 1.0f;  // of the gate, before everything; a float holds the product
  float down_multiplier = 1.0f;  // of y
};

inline auto gated_options() {
  return std::tuple{option(&GatedOptions::layout, "layout", {"separate", "gate_first", "up_first"}),
                    option(&GatedOptions::gate_multiplier, "gate_multiplier"),
                    option(&GatedOptions::down_multiplier, "down_multiplier")};
}

// Columns of a and da, and of b and db.
inline Expr gate_columns(Axis features) {
  const std::string f = features.symbol;
  return {"(layout ? 2F : F)",
          [f](const Binding& b) { return (b.at("layout") != 0 ? 2 : 1) * b.at(f); }};
}
inline Expr up_columns(Axis features) {
  const std::string f = features.symbol;
  return {"(layout ? 0 : F)",
          [f](const Binding& b) { return b.at("layout") != 0 ? 0.0 : b.at(f); }};
}

}  // namespace tigon
