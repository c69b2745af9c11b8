// SPDX-License-Identifier: Apache-2.0
// What the judge says of one output tensor.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tigon {

// One element beside the worst one, in its row.
struct Neighbour {
  int64_t column = 0;
  double got = 0, want = 0;
};

// How one output compares with the oracle. Ratios over budget are NaN when not computed.
struct OutputResult {
  std::string name;
  double error_over_budget = 0;  // worst element; passes iff <= 1
  double rms_over_budget = 0;    // passes iff <= 1; NaN where too few elements or values
  // What errors have in one direction (bias.h): passes iff <= 1; NaN where too little can tell.
  double one_sided_over_budget = std::numeric_limits<double>::quiet_NaN();
  double bias = 0;  // mean signed error over its expected spread (a z score)
  std::vector<int64_t> worst_index;
  double got = 0, want = 0;          // at worst_index
  std::vector<int64_t> first_index;  // of the first element over its budget; empty for none
  double first_got = 0, first_want = 0, first_error = 0;  // there; the error over its budget
  std::vector<Neighbour> neighbours;                      // up to two on either side of worst_index
  int64_t elements = 0, failing = 0;
  std::string pattern;       // where the failing elements lie, if that is simple to say
  double largest_error = 0;  // absolute, of the finite elements
  // largest_error over that of the naive implementation on the same inputs; NaN when unknown.
  // Information only: the yardstick shares mistakes.
  double naive_ratio = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace tigon
