// SPDX-License-Identifier: Apache-2.0
// Terms of the budget.
#include "harness/judge/budget.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "harness/judge/judge_fault.h"

namespace tigon {

namespace {

// Of what sums and functions may be off: what does not cancel in a correct kernel.
constexpr double kOneSided = 0.25;

// Slack for approximate functions: a quarter of a rounding of a 16-bit output, none in fp32.
double phi(DType output) {
  const double u = unit_roundoff(output);
  return u > 0x1p-20 ? u / 4 : 0;
}

// A GPU flushes fp32 subnormals to zero, in the output and on the way to it.
double eta(DType output) {
  if (planted(JudgeFault::kAbsoluteTolerance)) return 1e-3;
  return std::max(smallest_subnormal(output), 0x1p-124);
}

// What storing intermediates in the element type adds where they are below its normal range.
double lost_bits(const Budget& b, const Magnitudes& m) {
  const double stored =
      b.roundings - 1 + kSumFactor / 2 * b.intermediate_roundings + b.element_roundings;
  return stored * smallest_subnormal(b.element) * m.underflow;
}

}  // namespace

double largest_finite(DType t) {
  switch (t) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

Magnitudes magnitudes_of(const Expected& expected, size_t element) {
  Magnitudes m;
  m.value = std::abs(expected.value[element]);
  m.scale = expected.scale.empty() ? m.value : std::abs(expected.scale[element]);
  if (!expected.intermediate.empty()) m.intermediate = expected.intermediate[element];
  if (!expected.underflow.empty()) m.underflow = expected.underflow[element];
  return m;
}

double allowed_error(const Budget& b, const Magnitudes& m) {
  const double u_out = unit_roundoff(b.output), u_element = unit_roundoff(b.element);
  double rounded = m.value, summed = m.scale;
  if (planted(JudgeFault::kSwappedTerms)) std::swap(rounded, summed);
  return (b.roundings * u_out + phi(b.output)) * rounded +
         (kSumFactor * std::sqrt(b.reduction) + b.elementary) * kAccumulatorRoundoff * summed +
         kSumFactor * b.intermediate_roundings * u_element * m.intermediate +
         b.element_roundings * u_element * m.scale + lost_bits(b, m) + eta(b.output);
}

// Two roundings of fp32 beside those of sums and functions: of an option's reciprocal, and of
// values next to a tie. Where x * rstd is rounded before it is multiplied, every element of a row
// may be rounded to the same side.
double accumulated_error(const Budget& b, const Magnitudes& m) {
  return 2 * kAccumulatorRoundoff * m.value +
         kOneSided * (std::sqrt(b.reduction) + b.elementary) * kAccumulatorRoundoff * m.scale;
}

// The output's own rounding is left out, as bias.h takes it from the error.
double one_sided_error(const Budget& b, const Magnitudes& m) {
  const double u_out = unit_roundoff(b.output);
  return ((b.roundings - 1) * u_out + phi(b.output) / 3) * m.value + accumulated_error(b, m) +
         lost_bits(b, m) + eta(b.output);
}

bool bounds_one_side(const Budget& b) {
  return b.intermediate_roundings == 0 && b.element_roundings == 0;
}

// Roundings of the output itself are independent, so a third of their square; those of a stored
// intermediate may be one and the same for all elements (the gradient of a mean's targets is one
// number), so all of it and a quarter for chance.
double expected_spread(const Budget& b, const Magnitudes& m) {
  const double u_out = unit_roundoff(b.output), u_element = unit_roundoff(b.element);
  const double rounded = b.roundings * u_out * m.value;
  const double stored = b.intermediate_roundings * u_element * m.intermediate;
  const double chain = b.element_roundings * u_element * m.scale;
  const double sums = (std::sqrt(b.reduction) + b.elementary) * kAccumulatorRoundoff * m.scale;
  const double functions = phi(b.output) * m.value / 3;
  const double tiny = lost_bits(b, m) + eta(b.output);
  return std::sqrt(rounded * rounded / 3 + 1.25 * stored * stored + chain * chain + sums * sums +
                   functions * functions + tiny * tiny);
}

}  // namespace tigon
