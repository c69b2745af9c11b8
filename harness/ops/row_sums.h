// SPDX-License-Identifier: Apache-2.0
// The length of a sum over a row, as contracts give it.
#pragma once
#include <fmt/format.h>

#include "harness/spec/op_spec.h"
#include "reference/row_sums.h"

namespace tigon {

inline Expr row_sum_terms(Axis columns) {
  return {fmt::format("(1+{}/32)", columns.symbol), [=](const Binding& b) {
            return reference::row_sum_terms(static_cast<int64_t>(b.at(columns.symbol)));
          }};
}

}  // namespace tigon
