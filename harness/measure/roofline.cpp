// SPDX-License-Identifier: Apache-2.0
// A time as rates and as shares of the ceilings of the same run.
#include "harness/measure/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace tigon {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double ceiling(const Ceilings& ceilings, const std::string& name) {
  const auto found = ceilings.find(name);
  return found == ceilings.end() ? kNaN : found->second;
}

double fastest_stream(const Ceilings& ceilings) {
  double best = 0;
  for (const auto& [name, value] : ceilings)
    if (is_bandwidth(name)) best = std::max(best, value);
  return best > 0 ? best : kNaN;
}

std::string beats(double share, const char* ceiling) {
  return fmt::format("{:.1f}% of the {} measured in this run, which is not possible", 100 * share,
                     ceiling);
}

}  // namespace

Roofline roofline_of(double seconds, double bytes, double flop, double least_flop, DType dtype,
                     const Ceilings& ceilings) {
  Roofline r;
  r.bandwidth = bytes / seconds;
  r.flop_rate = flop / seconds;
  const double stream = fastest_stream(ceilings);
  const double gemm = ceiling(ceilings, std::string("gemm_") + name_of(dtype));
  r.share_of_copy = r.bandwidth / ceiling(ceilings, "copy");
  r.share_of_gemm = r.flop_rate / gemm;
  r.memory_bound = !(flop / gemm > bytes / stream);
  const double least_share_of_gemm = least_flop / seconds / gemm;
  if (r.bandwidth / stream > kMostShareOfCeiling)
    r.impossible = beats(r.bandwidth / stream, "fastest stream");
  else if (least_share_of_gemm > kMostShareOfGemm)
    r.impossible = beats(least_share_of_gemm, "GEMM rate");
  return r;
}

}  // namespace tigon
