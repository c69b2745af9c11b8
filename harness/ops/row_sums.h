// SPDX-License-Identifier: Apache-2.0
// The lengths of a sum over a row and of a sum over rows, as contracts give them.
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

inline Expr column_sum_terms(Axis rows) {
  return {fmt::format("min({0},32+{0}/32)", rows.symbol), [=](const Binding& b) {
            return reference::column_sum_terms(static_cast<int64_t>(b.at(rows.symbol)));
          }};
}

}  // namespace tigon
