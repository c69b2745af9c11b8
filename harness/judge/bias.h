// SPDX-License-Identifier: Apache-2.0
// Whether the errors of an output lean to one side: in many rows chance cancels, and what is lost
// in one direction adds up.
#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "harness/judge/budget.h"

namespace tigon {

// The error of an element is taken from the oracle's value rounded to the output's type, so that
// the rounding of a correct kernel, which follows the values, is none. Next to a tie that rounding
// is either way, and in some inputs every second value is a tie. So it is rounded as far up as fp32
// may have moved it, by accumulated_error, and the error is by that much larger; for errors
// downwards as far down. Where ties are where chance puts them, the mean stays what it was.
// The mean over a row is in units of what a correct kernel may be off in one direction
// (one_sided_error), and the mean over rows may be one such unit and what chance allows: kChance
// standard errors of the rows' means. Where few rows have means of their own, the others may be
// equal rows, and nothing is said.
class Bias {
 public:
  // A row of a vector is one element.
  Bias(const Budget& budget, const std::vector<int64_t>& shape);

  // In row-major order; both finite.
  void add(int64_t index, double got, double want, const Magnitudes& m);
  // At most 1 passes; NaN where there are too few different rows or values to tell.
  double over_budget();

 private:
  // Errors of a row: from the rounded value, and upwards, downwards, away from zero, towards it.
  struct Sums {
    double error = 0, up = 0, down = 0, outward = 0, inward = 0, allowed = 0;
  };
  // Mean and spread of the rows' means (Welford 1962).
  struct Means {
    double mean = 0, squares = 0;
    void add(double value, int64_t count);
    double over_budget(int64_t count) const;
  };
  void end_row();

  Budget budget_;
  int64_t row_elements_, row_ = 0, rows_ = 0;
  Sums sums_;
  Means up_, down_, outward_, inward_;
  std::vector<bool> seen_;      // values of a 16-bit output
  std::set<double> different_;  // the rows' means, the first few
};

}  // namespace tigon
