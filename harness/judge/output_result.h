// What the judge says of one output tensor.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tigon {

// How one output compares with the oracle. Ratios over budget are NaN when not computed.
struct OutputResult {
  std::string name;
  double error_over_budget = 0;  // worst element; passes iff <= 1
  double rms_over_budget = 0;    // passes iff <= 1; NaN below 1000 elements
  double bias = 0;               // mean signed error over its expected spread (a z score)
  std::vector<int64_t> worst_index;
  double got = 0, want = 0;  // at worst_index
  int64_t elements = 0, failing = 0;
};

}  // namespace tigon
