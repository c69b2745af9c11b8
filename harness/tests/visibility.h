// SPDX-License-Identifier: Apache-2.0
// Proof that the test data of a contract show what they must: changing an option, leaving out a
// tensor or changing an input moves an output of the oracle by more than its budget, and zeros, a
// constant or a copy of an input do not pass for an output.
#pragma once
#include <string>
#include <vector>

#include "harness/spec/op_spec.h"

namespace tigon {

// One thing that must show in the outputs of a pass, or must not, and how far it does.
struct VisibilityCheck {
  std::string op, pass;
  DType dtype = DType::kF32;
  std::string what;    // "option eps", "tensor w left out", "input x", "output y is not zeros", ...
  std::string seen;    // where it shows best, or why it must not show
  double budgets = 0;  // largest change of an output element over its budget
  bool must_show = true;
  bool passed() const { return must_show == (budgets > 1); }
};

// Everything that must show in a pass, over the input sets, option sets and small shapes of its
// contract. An option that the pass declares invisible must not show.
std::vector<VisibilityCheck> visibility_of(const OpSpec& op, const Pass& pass, DType dtype);

// One line.
std::string text_of(const VisibilityCheck& check);

}  // namespace tigon
