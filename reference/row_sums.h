// SPDX-License-Identifier: Apache-2.0
// How long the sums over a row's columns, and over rows, are, for budgets.
#pragma once
#include <algorithm>
#include <cstdint>

namespace tigon::reference {

// n of the budget's 4 sqrt(n) for a sum over a row: a kernel adds it in partial sums, of a warp's
// 32 lanes at least, whose roundings are independent. One chain over 128,256 columns would be off
// by more, and so is a sum that lost a vector of them.
inline double row_sum_terms(int64_t columns) { return 1 + static_cast<double>(columns) / 32; }

// The same for a sum over rows: blocks, of at least 32 where there are as many rows, each add some
// rows, and their sums are added in another chain of at most 32.
inline double column_sum_terms(int64_t rows) {
  const auto t = static_cast<double>(rows);
  return std::min(t, 32 + t / 32);
}

}  // namespace tigon::reference
