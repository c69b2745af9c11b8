// SPDX-License-Identifier: Apache-2.0
// A time as rates and as shares of the ceilings of the same run.
#pragma once
#include <string>

#include "harness/measure/ceilings.h"
#include "kernels/signature/dtype.h"

namespace tigon {

struct Roofline {
  double bandwidth = 0;      // bytes/s of the least bytes
  double flop_rate = 0;      // flop/s of the formula
  double share_of_copy = 0;  // NaN without that ceiling
  double share_of_gemm = 0;
  bool memory_bound = true;  // which ceiling is nearer
  std::string impossible;    // why the time cannot be right; empty when it can
};

// A time that beats the fastest stream by more than 5% is a mistake of the measurement.
inline constexpr double kMostShareOfCeiling = 1.05;
// A matrix rate depends on the data, because power limits the clock: f16 gradients that flush to
// zero run faster than the GEMM measured on random operands.
inline constexpr double kMostShareOfGemm = 1.25;

// bytes and flop: of the formula; least_flop: what cannot be left out.
Roofline roofline_of(double seconds, double bytes, double flop, double least_flop, DType dtype,
                     const Ceilings& ceilings);

}  // namespace tigon
