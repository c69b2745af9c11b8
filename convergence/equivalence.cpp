// SPDX-License-Identifier: Apache-2.0
// Two one-sided tests and the quantile that they need (statistics.h).
#include "convergence/equivalence.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "convergence/statistics.h"

namespace tigon::convergence {
namespace {

double mean(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

double squares_about(const std::vector<double>& v, double centre) {
  double sum = 0;
  for (double x : v) sum += (x - centre) * (x - centre);
  return sum;
}

// Probability that |t| < x: the closed sums of Abramowitz and Stegun 26.7.3 and 26.7.4.
double probability_within(double x, int freedom) {
  const double angle = std::atan(x / std::sqrt(static_cast<double>(freedom)));
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const bool odd = freedom % 2 == 1;
  double term = odd ? cosine : 1.0, sum = freedom == 1 ? 0.0 : term;
  for (int k = odd ? 3 : 2; k < freedom; k += 2) {
    term *= cosine * cosine * (k - 1) / k;
    sum += term;
  }
  return odd ? 2.0 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

// The x for which a noncentral t about x lies above -t in 9 of 10 cases: the normal approximation
// of Abramowitz and Stegun 26.7.10.
double noticed_in_9_of_10(double t, int freedom) {
  constexpr double kNormal = 1.2815515655;  // exceeded in 1 of 10 cases
  return kNormal * std::sqrt(1 + t * t / (2.0 * freedom)) - t * (1 - 1 / (4.0 * freedom));
}

}  // namespace

double student_t(double p, int freedom) {
  double low = 0, high = 1;
  while (probability_within(high, freedom) < 2 * p - 1) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (probability_within(middle, freedom) < 2 * p - 1 ? low : high) = middle;
  }
  return high;
}

Equivalence two_one_sided_tests(std::string what, const std::vector<double>& differences,
                                double margin, double confidence) {
  const double centre = mean(differences);
  const auto n = static_cast<double>(differences.size());
  const int freedom = static_cast<int>(differences.size()) - 1;
  const double error = std::sqrt(squares_about(differences, centre) / freedom / n);
  const double t = student_t(confidence, freedom), reach = t * error;
  return {std::move(what),
          centre,
          centre - reach,
          centre + reach,
          margin,
          confidence,
          margin + noticed_in_9_of_10(t, freedom) * error};
}

}  // namespace tigon::convergence
