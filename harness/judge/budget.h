// SPDX-License-Identifier: Apache-2.0
// The rounding budget of one element (README.md says why).
#pragma once
#include <cstddef>
#include <vector>

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

// lambda: a sum of n terms is off by at most 4 sqrt(n) u with near certainty.
inline constexpr double kSumFactor = 4;
// u_acc: sums are kept in fp32.
inline constexpr double kAccumulatorRoundoff = 0x1p-24;

// The largest finite value of a float type.
double largest_finite(DType t);

// Budget of one element.
double allowed_error(const Budget& budget, const Magnitudes& m);
// How far a correct element may be off in one direction on average (bias.h): a sum's roundings
// cancel and a function's may not. Whether that can be said: one rounding of a stored intermediate
// may be that of many elements.
double one_sided_error(const Budget& budget, const Magnitudes& m);
// The part of it that sums and roundings in fp32 have, before a rounding to the output's type.
double accumulated_error(const Budget& budget, const Magnitudes& m);
bool bounds_one_side(const Budget& budget);
// Expected spread of a correct element's error, for the root mean square.
double expected_spread(const Budget& budget, const Magnitudes& m);

}  // namespace tigon
