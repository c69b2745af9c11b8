// Compares one output with the oracle by a rounding budget per element (NUMERICS.md A4): fails
// closed, classifies NaN and infinity first, says where and in which pattern it fails.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "harness/judge/output_result.h"
#include "harness/judge/verdict.h"
#include "kernels/signature/dtype.h"

namespace tigon {

// The numbers of the budget
//   (k u_out + phi) |y| + (4 sqrt(n) + c0) u_acc S + 4 k_int u_T S2 + stored u_T S
//   + (k - 1 + 2 k_int + stored) eta_T U + eta.
struct Budget {
  double roundings = 1;               // k
  double reduction = 1;               // n
  double elementary = 8;              // c0
  double intermediate_roundings = 0;  // k_int
  double element_roundings = 0;       // stored: intermediates of a chain of primitives
  DType output = DType::kF32;         // u_out
  DType element = DType::kF32;        // u_T, eta_T
};

// What the oracle says about an output, row-major. Empty scale: S = |y|; intermediate: S2 = 0;
// underflow: U = 1.
struct Expected {
  std::vector<double> value, scale = {}, intermediate = {}, underflow = {};
};

// Of one element.
struct Magnitudes {
  double value = 0;  // |y|
  double scale = 0, intermediate = 0, underflow = 1;
};
Magnitudes magnitudes_of(const Expected& expected, size_t element);

struct Comparison {
  OutputResult result;
  Verdict verdict = Verdict::kPassed;  // or kNonfinite, kIncorrectNumerical
  std::string reason;                  // one line; empty when passed
};

// Budget of one element.
double allowed_error(const Budget& budget, const Magnitudes& m);

// `got` in row-major order of `shape`, already widened to double.
Comparison compare(const std::string& name, const std::vector<double>& got,
                   const Expected& expected, const std::vector<int64_t>& shape,
                   const Budget& budget);

// One short sentence on where the failing elements lie, e.g. "only columns >= 120 of 127"; empty
// when there is no simple pattern. `failing` are row-major indices.
std::string failure_pattern(const std::vector<int64_t>& failing, const std::vector<int64_t>& shape);

}  // namespace tigon
