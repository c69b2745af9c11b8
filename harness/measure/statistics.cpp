// SPDX-License-Identifier: Apache-2.0
// Order statistics of samples.
#include "harness/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tigon {
namespace {

double quantile(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

}  // namespace

Summary summarize(std::vector<double> samples) {
  if (samples.empty()) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan, nan, nan, nan, 0};
  }
  std::sort(samples.begin(), samples.end());
  return {.median = quantile(samples, 0.5),
          .q1 = quantile(samples, 0.25),
          .q3 = quantile(samples, 0.75),
          .min = samples.front(),
          .max = samples.back(),
          .n = samples.size()};
}

bool StoppingRule::enough(const std::vector<double>& samples, double seconds_spent) const {
  if (samples.size() >= most) return true;
  if (samples.size() < least) return false;
  if (seconds_spent >= seconds) return true;
  if (samples.size() < 2 * least) return false;
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  const double first = summarize({samples.begin(), middle}).median;
  const double second = summarize({middle, samples.end()}).median;
  return std::abs(first - second) <= agreement * std::min(first, second);
}

}  // namespace tigon
