// SPDX-License-Identifier: Apache-2.0
// Are pairs of runs equivalent? Two one-sided tests (Schuirmann 1987): not "no difference was
// found", but "a difference beyond the margin is ruled out".
#pragma once
#include <string>
#include <vector>

namespace tigon::convergence {

struct Equivalence {
  std::string what;             // "last quarter", "held out"
  double difference = 0;        // mean over the pairs
  double lower = 0, upper = 0;  // of the interval that each one-sided test looks at one end of
  double margin = 0;
  double confidence = 0;  // of each test
  // A shift of all pairs by so much would not have been shown equivalent in 9 of 10 trials.
  double noticed = 0;
  bool shown() const { return lower > -margin && upper < margin; }
};

// Of the differences of at least two independent pairs (Student's t). Not shown when one is not
// finite. Which shift is noticed follows from the noncentral t of the upper end, with the deviation
// that the pairs have.
Equivalence two_one_sided_tests(std::string what, const std::vector<double>& differences,
                                double margin, double confidence);

}  // namespace tigon::convergence
