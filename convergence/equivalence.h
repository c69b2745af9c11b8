// SPDX-License-Identifier: Apache-2.0
// Are two groups of runs equivalent? Two one-sided tests (Schuirmann 1987): not "no difference was
// found", but "a difference beyond the margin is ruled out".
#pragma once
#include <string>
#include <vector>

namespace tigon::convergence {

struct Equivalence {
  std::string what;             // "last quarter", "held out"
  double difference = 0;        // mean of the second group minus mean of the first
  double lower = 0, upper = 0;  // of the interval that each one-sided test looks at one end of
  double margin = 0;
  double confidence = 0;  // of each test
  bool shown() const { return lower > -margin && upper < margin; }
};

// Of independent values with one common spread, which both groups estimate (Student's t). Each
// group has at least one value, one of them two. Not shown when a value is not finite.
Equivalence two_one_sided_tests(std::string what, const std::vector<double>& first,
                                const std::vector<double>& second, double margin,
                                double confidence);

// The value that Student's t with `freedom` degrees exceeds with probability 1 - p, p from 0.5.
double student_t(double p, int freedom);

}  // namespace tigon::convergence
