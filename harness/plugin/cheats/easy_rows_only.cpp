// SPDX-License-Identifier: Apache-2.0
// Estimates a row's mean square from its first elements: right for rows of equal elements only.
#include <algorithm>

#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  const cheat::Forward f(call);
  for (int64_t t = 0; t < f.rows; ++t) {
    const int64_t sample = std::min<int64_t>(f.columns, 16);
    double sum = 0;
    for (int64_t h = 0; h < sample; ++h) sum += std::pow(f.x[t * f.x_stride + h], 2.0);
    const double r = 1 / std::sqrt(sum / static_cast<double>(sample) + f.eps);
    f.rstd[t] = static_cast<float>(r);
    for (int64_t h = 0; h < f.columns; ++h)
      f.y[t * f.y_stride + h] = static_cast<float>(f.x[t * f.x_stride + h] * r * f.gain(h));
  }
  return cheat::kOk;
}
