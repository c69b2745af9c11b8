// The comparator: budget per element, root mean square, pattern of the failures.
#include "harness/judge/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tigon {

namespace {

constexpr double kLambda = 4;                  // sqrt(n) u bounds a sum's error with near certainty
constexpr double kAccumulator = 0x1p-24;       // sums are kept in fp32
constexpr int64_t kRmsElements = 1000;         // fewer say nothing about a root mean square
constexpr size_t kPatternElements = 1u << 20;  // failing indices kept for the pattern

// Slack for approximate functions: a quarter of a rounding of a 16-bit output, none in fp32.
double phi(DType output) {
  const double u = unit_roundoff(output);
  return u > 0x1p-20 ? u / 4 : 0;
}

// A GPU flushes fp32 subnormals to zero, in the output and on the way to it.
double eta(DType output) { return std::max(smallest_subnormal(output), 0x1p-124); }

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

// What storing intermediates in the element type adds where they are below its normal range.
double lost_bits(const Budget& b, const Magnitudes& m) {
  const double stored =
      b.roundings - 1 + kLambda / 2 * b.intermediate_roundings + b.element_roundings;
  return stored * smallest_subnormal(b.element) * m.underflow;
}

// Expected spread of a correct element's error. Roundings of the output itself are independent, so
// a third of their square; those of a stored intermediate may be one and the same for all elements
// (the gradient of a mean's targets is one number), so all of it and a quarter for chance.
double sigma(const Budget& b, const Magnitudes& m) {
  const double u_out = unit_roundoff(b.output), u_element = unit_roundoff(b.element);
  const double rounded = b.roundings * u_out * m.value;
  const double stored = b.intermediate_roundings * u_element * m.intermediate;
  const double chain = b.element_roundings * u_element * m.scale;
  const double sums = (std::sqrt(b.reduction) + b.elementary) * kAccumulator * m.scale;
  const double functions = phi(b.output) * m.value / 3;
  const double tiny = lost_bits(b, m) + eta(b.output);
  return std::sqrt(rounded * rounded / 3 + 1.25 * stored * stored + chain * chain + sums * sums +
                   functions * functions + tiny * tiny);
}

std::vector<int64_t> unravel(int64_t index, const std::vector<int64_t>& shape) {
  std::vector<int64_t> at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = index % shape[d];
    index /= shape[d];
  }
  return at;
}

std::string place(const std::string& name, const std::vector<int64_t>& at) {
  return fmt::format("{}[{}]", name, fmt::join(at, ","));
}

// Which class a value is in: 0 finite, 1 NaN, 2 +inf, 3 -inf.
int classify(double v) {
  if (std::isnan(v)) return 1;
  if (std::isinf(v)) return v > 0 ? 2 : 3;
  return 0;
}

// An infinity where the oracle's finite value, within its budget, is beyond the output's range.
bool overflows(double got, double want, double allowed, DType output) {
  return std::isinf(got) && std::isfinite(want) && std::signbit(got) == std::signbit(want) &&
         std::abs(want) + allowed > largest_finite(output);
}

// The oracle's infinity in double cannot be a finite number; its finite overflow may be either.
bool same_class(double got, double want, double allowed, DType output) {
  return classify(got) == classify(want) || overflows(got, want, allowed, output);
}

struct Indices {
  std::vector<int64_t> sorted;  // distinct, ascending
  explicit Indices(std::vector<int64_t> all) : sorted(std::move(all)) {
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  }
  int64_t first() const { return sorted.front(); }
  int64_t count() const { return static_cast<int64_t>(sorted.size()); }
};

// "only columns >= 120 of 127" and the like; empty when they are spread all over the dimension.
std::string one_dimension(const char* what, const Indices& indices, int64_t length) {
  const int64_t first = indices.first(), count = indices.count();
  if (count == length || length == 1) return "";
  if (count == 1) return fmt::format("only {} {} of {}", what, first, length);
  if (first + count == length) return fmt::format("only {}s >= {} of {}", what, first, length);
  if (first == 0 && indices.sorted.back() == count - 1)
    return fmt::format("only {}s < {} of {}", what, count, length);
  int64_t step = 0;
  for (size_t i = 1; i < indices.sorted.size(); ++i)
    step = std::gcd(step, indices.sorted[i] - indices.sorted[i - 1]);
  if (step > 1 && count >= 3)
    return fmt::format("only every {}th {} from {}", step, what, first % step);
  return "";
}

}  // namespace

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
  return (b.roundings * u_out + phi(b.output)) * m.value +
         (kLambda * std::sqrt(b.reduction) + b.elementary) * kAccumulator * m.scale +
         kLambda * b.intermediate_roundings * u_element * m.intermediate +
         b.element_roundings * u_element * m.scale + lost_bits(b, m) + eta(b.output);
}

std::string failure_pattern(const std::vector<int64_t>& failing,
                            const std::vector<int64_t>& shape) {
  const int64_t size =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
  if (failing.empty() || size <= 1) return "";
  if (static_cast<int64_t>(failing.size()) == size) return "every element";
  const int64_t columns = shape.back();
  std::vector<int64_t> row_of, column_of;
  for (int64_t i : failing) {
    row_of.push_back(i / columns);
    column_of.push_back(i % columns);
  }
  const Indices rows(row_of), cols(column_of);
  if (shape.size() == 1) return one_dimension("element", cols, columns);
  std::string text = one_dimension("row", rows, size / columns);
  const std::string by_column = one_dimension("column", cols, columns);
  if (!text.empty() && !by_column.empty()) text += ", ";
  return text + by_column;
}

Comparison compare(const std::string& name, const std::vector<double>& got,
                   const Expected& expected, const std::vector<int64_t>& shape,
                   const Budget& budget) {
  Comparison out;
  OutputResult& r = out.result;
  r.name = name;
  r.elements = static_cast<int64_t>(expected.value.size());
  r.rms_over_budget = std::numeric_limits<double>::quiet_NaN();
  if (got.size() != expected.value.size()) {
    out.verdict = Verdict::kIncorrectNumerical;
    out.reason = fmt::format("{} has {} elements, the oracle {}", name, got.size(), r.elements);
    return out;
  }

  std::vector<int64_t> failing;
  int64_t bad_class = -1, worst = -1, judged = 0;
  double sum_of_squares = 0, signed_error = 0, variance = 0;
  for (int64_t i = 0; i < r.elements; ++i) {
    const auto at = static_cast<size_t>(i);
    const double want = expected.value[at], value = got[at];
    const Magnitudes m = magnitudes_of(expected, at);
    const double allowed = allowed_error(budget, m);
    if (!same_class(value, want, allowed, budget.output)) {
      if (bad_class < 0) bad_class = i;
      ++r.failing;
      if (failing.size() < kPatternElements) failing.push_back(i);
      continue;
    }
    if (!std::isfinite(value) || !std::isfinite(want)) continue;  // the same kind of non-finite
    const double error = value - want;
    const double ratio = std::abs(error) / allowed;
    if (!(ratio <= 1)) {
      ++r.failing;
      if (failing.size() < kPatternElements) failing.push_back(i);
    }
    if (worst < 0 || !(ratio <= r.error_over_budget)) {
      worst = i;
      r.error_over_budget = ratio;
    }
    const double spread = sigma(budget, m);
    sum_of_squares += (error / spread) * (error / spread);
    signed_error += want < 0 ? -error : error;
    variance += spread * spread;
    ++judged;
  }
  if (judged >= kRmsElements)
    r.rms_over_budget = std::sqrt(sum_of_squares / static_cast<double>(judged));
  r.bias = variance > 0 ? signed_error / std::sqrt(variance) : 0;

  const int64_t shown = bad_class >= 0 ? bad_class : worst;
  if (shown >= 0) {
    r.worst_index = unravel(shown, shape);
    r.got = got[static_cast<size_t>(shown)];
    r.want = expected.value[static_cast<size_t>(shown)];
  }
  const std::string pattern = failure_pattern(failing, shape);
  const std::string where = pattern.empty() ? "" : "; " + pattern;
  if (bad_class >= 0) {
    out.verdict = Verdict::kNonfinite;
    r.error_over_budget = std::numeric_limits<double>::infinity();
    out.reason =
        fmt::format("{}: got {:.9g} want {:.9g}; {} of {} elements wrong{}",
                    place(name, r.worst_index), r.got, r.want, r.failing, r.elements, where);
  } else if (r.failing > 0 || !(r.error_over_budget <= 1)) {
    out.verdict = Verdict::kIncorrectNumerical;
    out.reason = fmt::format(
        "{}: got {:.9g} want {:.9g}, error {:.3g} of its budget; {} of {} elements over it, bias "
        "{:+.1f}{}",
        place(name, r.worst_index), r.got, r.want, r.error_over_budget, r.failing, r.elements,
        r.bias, where);
  } else if (judged >= kRmsElements && !(r.rms_over_budget <= 1)) {
    out.verdict = Verdict::kIncorrectNumerical;
    out.reason = fmt::format(
        "{}: root mean square error {:.3g} of its budget (no element is over its own), bias "
        "{:+.1f}",
        name, r.rms_over_budget, r.bias);
  }
  return out;
}

}  // namespace tigon
