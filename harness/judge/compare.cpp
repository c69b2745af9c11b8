// SPDX-License-Identifier: Apache-2.0
// The comparator: budget per element, root mean square, pattern of the failures.
#include "harness/judge/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "harness/judge/bias.h"
#include "harness/judge/judge_fault.h"
#include "harness/judge/pattern.h"

namespace tigon {

namespace {

constexpr int64_t kRmsElements = 1000;  // fewer say nothing about a root mean square
constexpr int64_t kRmsValues = 100;     // neither do fewer values, see MeanSquare
// Few rows of a 16-bit output are allowed a little more: in y = x * rstd, with no weight, all
// errors of a row are a function of the mantissa of x, and near half a unit for some rstd.
// Enumerated over rstd, a correct bf16 row is at most at 1.023 with all 128 mantissas and at 1.118
// with the 100 worst of them, an f16 row at 1.023. With eight rows of different rstd none of 750
// was above 1.
constexpr int64_t kRmsRows = 8;
constexpr double kFewRowsRms = 1.15;
constexpr size_t kPatternElements = 1u << 20;  // failing indices kept for the pattern
constexpr int64_t kNeighbours = 2;             // shown on either side of the worst element

std::vector<int64_t> unravel(int64_t index, const std::vector<int64_t>& shape) {
  std::vector<int64_t> at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = index % shape[d];
    index /= shape[d];
  }
  return at;
}

// Which class a value is in: 0 finite, 1 NaN, 2 +inf, 3 -inf.
int classify(double v) {
  if (std::isnan(v)) return 1;
  if (std::isinf(v)) return v > 0 || planted(JudgeFault::kAnySignOfInfinity) ? 2 : 3;
  return 0;
}

// An infinity where the oracle's finite value, within its budget, is beyond the output's range.
bool overflows(double got, double want, double allowed, DType output) {
  if (planted(JudgeFault::kInfinityForFinite) && std::isinf(got)) return true;
  return std::isinf(got) && std::isfinite(want) && std::signbit(got) == std::signbit(want) &&
         std::abs(want) + allowed > largest_finite(output);
}

// The oracle's infinity in double cannot be a finite number; its finite overflow may be either.
bool same_class(double got, double want, double allowed, DType output) {
  if (planted(JudgeFault::kAcceptsNan) && std::isnan(got)) return true;
  if (planted(JudgeFault::kSkipsNonfiniteOracle) && !std::isfinite(want)) return true;
  return classify(got) == classify(want) || overflows(got, want, allowed, output);
}

bool within(double ratio) {
  return planted(JudgeFault::kNanBudgetAllows) ? !(ratio > 1) : ratio <= 1;
}

// The mean of squared errors, in units of their spread. Elements of a 16-bit output that are stored
// as the same value may share one error (rows of equal elements), so each value counts once, with
// the mean of its elements.
class MeanSquare {
 public:
  MeanSquare(DType output, int64_t elements) : is_f16_(output == DType::kF16) {
    if (size_of(output) == 2 && elements >= kRmsElements) values_.resize(size_t{1} << 16);
  }

  void add(double got, double square) {
    Sum& sum = values_.empty() ? all_ : values_[bits_of(got)];
    sum.squares += square;
    if (++sum.count == 1) ++different_;
  }
  int64_t distinct() const { return values_.empty() ? all_.count : different_; }
  double mean() const {
    if (values_.empty()) return all_.squares / static_cast<double>(all_.count);
    double total = 0;
    for (const Sum& s : values_)
      if (s.count > 0) total += s.squares / static_cast<double>(s.count);
    return total / static_cast<double>(distinct());
  }

 private:
  struct Sum {
    double squares = 0;
    int64_t count = 0;
  };
  uint16_t bits_of(double got) const { return is_f16_ ? f16(got).bits : bf16(got).bits; }

  bool is_f16_;
  int64_t different_ = 0;
  Sum all_;
  std::vector<Sum> values_;
};

// One pass over the elements.
class Scan {
 public:
  Scan(const std::vector<double>& got, const Expected& expected, const std::vector<int64_t>& shape,
       const Budget& budget, OutputResult* result)
      : got_(got),
        expected_(expected),
        shape_(shape),
        budget_(budget),
        result_(*result),
        squares_(budget.output, result->elements),
        bias_(budget, shape) {}

  void run() {
    int64_t end = result_.elements;
    if (planted(JudgeFault::kFirstElements)) end = std::min<int64_t>(end, 1024);
    if (planted(JudgeFault::kAnySize)) end = std::min(end, static_cast<int64_t>(got_.size()));
    for (int64_t i = 0; i < end; ++i) element(i);
    if (has_rms())
      result_.rms_over_budget = std::sqrt(squares_.mean()) / (has_few_rows() ? kFewRowsRms : 1);
    result_.one_sided_over_budget = bias_.over_budget();
    result_.bias = variance_ > 0 ? signed_error_ / std::sqrt(variance_) : 0;
  }

  // The first element whose class is wrong, else the one with the largest ratio; -1 for none.
  int64_t shown() const { return bad_class_ >= 0 ? bad_class_ : worst_; }
  bool wrong_class() const { return bad_class_ >= 0; }
  bool has_rms() const { return judged_ >= kRmsElements && squares_.distinct() >= kRmsValues; }
  std::vector<int64_t>& failing() { return failing_; }
  const std::vector<int64_t>& failing() const { return failing_; }

 private:
  bool has_few_rows() const {
    return size_of(budget_.output) == 2 && shape_.size() > 1 &&
           result_.elements < kRmsRows * shape_.back();
  }

  void element(int64_t i) {
    const auto at = static_cast<size_t>(i);
    const double want = expected_.value[at], got = got_[at];
    Magnitudes m = magnitudes_of(expected_, at);
    if (planted(JudgeFault::kRelativeToCandidate)) m.value = m.scale = std::abs(got);
    const double allowed = allowed_error(budget_, m);
    if (!same_class(got, want, allowed, budget_.output)) {
      if (bad_class_ < 0) bad_class_ = i;
      fail(i);
      return;
    }
    if (!std::isfinite(got) || !std::isfinite(want)) return;  // the same kind of non-finite
    const double error = got - want;
    double ratio = std::abs(error) / allowed;
    if (!within(ratio)) fail(i);
    // A budget that is NaN: the worst there is.
    if (std::isnan(ratio) && !planted(JudgeFault::kNanBudgetAllows))
      ratio = std::numeric_limits<double>::infinity();
    if (worst_ < 0 || ratio > result_.error_over_budget) {
      worst_ = i;
      result_.error_over_budget = ratio;
    }
    result_.largest_error = std::max(result_.largest_error, std::abs(error));
    const double spread = expected_spread(budget_, m);
    squares_.add(got, (error / spread) * (error / spread));
    bias_.add(i, got, want, m);
    signed_error_ += want < 0 ? -error : error;
    variance_ += spread * spread;
    ++judged_;
  }

  void fail(int64_t i) {
    ++result_.failing;
    if (failing_.size() < kPatternElements) failing_.push_back(i);
  }

  const std::vector<double>& got_;
  const Expected& expected_;
  const std::vector<int64_t>& shape_;
  const Budget& budget_;
  OutputResult& result_;
  std::vector<int64_t> failing_;
  int64_t bad_class_ = -1, worst_ = -1, judged_ = 0;
  double signed_error_ = 0, variance_ = 0;
  MeanSquare squares_;
  Bias bias_;
};

// As it is shown: the sign of a NaN says nothing.
double shown_value(double v) { return std::isnan(v) ? std::abs(v) : v; }

// The elements on either side of `index` in its row.
std::vector<Neighbour> neighbours_of(int64_t index, const std::vector<double>& got,
                                     const std::vector<double>& want,
                                     const std::vector<int64_t>& shape) {
  std::vector<Neighbour> all;
  const int64_t columns = shape.empty() ? 1 : shape.back(), column = index % columns;
  const int64_t last = std::min(columns - 1, column + kNeighbours);
  for (int64_t c = std::max<int64_t>(0, column - kNeighbours); c <= last; ++c)
    if (const auto at = static_cast<size_t>(index - column + c); c != column && at < got.size())
      all.push_back({c, shown_value(got[at]), shown_value(want[at])});
  return all;
}

void note_first(int64_t index, const std::vector<double>& got, const Expected& expected,
                const std::vector<int64_t>& shape, const Budget& budget, OutputResult* r) {
  const auto at = static_cast<size_t>(index);
  r->first_index = unravel(index, shape);
  r->first_got = shown_value(got[at]);
  r->first_want = shown_value(expected.value[at]);
  r->first_error =
      std::abs(r->first_got - r->first_want) / allowed_error(budget, magnitudes_of(expected, at));
}

std::string pattern_of(const Scan& scan, const OutputResult& r, const std::vector<int64_t>& shape) {
  // Of failures beyond those that are kept nothing is known.
  if (r.failing > static_cast<int64_t>(scan.failing().size())) return "";
  return failure_pattern(scan.failing(), shape);
}

void decide(const Scan& scan, const std::vector<int64_t>& shape, Comparison* c) {
  OutputResult& r = c->result;
  const std::string place = fmt::format("{}[{}]", r.name, fmt::join(r.worst_index, ","));
  r.pattern = pattern_of(scan, r, shape);
  const std::string where = (r.pattern.empty() ? "" : "; " + r.pattern) + beside(r);
  if (scan.wrong_class()) {
    c->verdict = Verdict::kNonfinite;
    r.error_over_budget = std::numeric_limits<double>::infinity();
    c->reason = fmt::format("{}: got {:.9g} want {:.9g}; {} of {} elements wrong{}", place, r.got,
                            r.want, r.failing, r.elements, where);
  } else if (r.failing > 0 || !within(r.error_over_budget)) {
    c->verdict = Verdict::kIncorrectNumerical;
    c->reason = fmt::format(
        "{}: got {:.9g} want {:.9g}, error {:.3g} of its budget; {} of {} elements over it, bias "
        "{:+.3g} sigma{}",
        place, r.got, r.want, r.error_over_budget, r.failing, r.elements, r.bias, where);
  } else if (scan.has_rms() && !(r.rms_over_budget <= 1) &&
             !planted(JudgeFault::kNoRootMeanSquare)) {
    c->verdict = Verdict::kIncorrectNumerical;
    c->reason = fmt::format(
        "{}: root mean square error {:.3g} of its budget (no element is over its own), bias "
        "{:+.3g} sigma",
        r.name, r.rms_over_budget, r.bias);
  } else if (r.one_sided_over_budget > 1 && !planted(JudgeFault::kNoBias)) {
    c->verdict = Verdict::kIncorrectNumerical;
    c->reason = fmt::format(
        "{}: errors lean to one side, {:.3g} times what chance allows (no element is over its "
        "budget), bias {:+.3g} sigma",
        r.name, r.one_sided_over_budget, r.bias);
  }
}

}  // namespace

std::string beside(const OutputResult& r) {
  if (r.neighbours.empty()) return "";
  std::string got, want;
  const int64_t column = r.worst_index.back();
  const auto add = [&](const char* format, double g, double w) {
    got += fmt::format(fmt::runtime(format), g);
    want += fmt::format(fmt::runtime(format), w);
  };
  bool shown = false;
  for (const Neighbour& n : r.neighbours) {
    if (n.column > column && !shown) add(" [{:.4g}]", r.got, r.want);
    shown = n.column > column;
    add(" {:.4g}", n.got, n.want);
  }
  if (!shown) add(" [{:.4g}]", r.got, r.want);
  return fmt::format("; beside it got{} want{}", got, want);
}

Comparison compare(const std::string& name, const std::vector<double>& got,
                   const Expected& expected, const std::vector<int64_t>& shape,
                   const Budget& budget) {
  Comparison out;
  OutputResult& r = out.result;
  r.name = name;
  r.elements = static_cast<int64_t>(expected.value.size());
  r.rms_over_budget = std::numeric_limits<double>::quiet_NaN();
  const int64_t size =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
  if ((got.size() != expected.value.size() || size != r.elements) &&
      !planted(JudgeFault::kAnySize)) {
    out.verdict = Verdict::kIncorrectNumerical;
    r.error_over_budget = std::numeric_limits<double>::infinity();
    out.reason = fmt::format("{} has {} elements, the oracle {}, its shape {}", name, got.size(),
                             r.elements, size);
    return out;
  }
  Scan scan(got, expected, shape, budget, &r);
  scan.run();
  if (const int64_t shown = scan.shown(); shown >= 0) {
    r.worst_index = unravel(shown, shape);
    r.got = shown_value(got[static_cast<size_t>(shown)]);
    r.want = shown_value(expected.value[static_cast<size_t>(shown)]);
    r.neighbours = neighbours_of(shown, got, expected.value, shape);
  }
  if (!scan.failing().empty()) note_first(scan.failing().front(), got, expected, shape, budget, &r);
  decide(scan, shape, &out);
  out.failing = std::move(scan.failing());
  return out;
}

void Judgement::add(const Comparison& c) {
  const bool first = !is_failure(verdict) || planted(JudgeFault::kLastVerdict);
  if (first) reason = c.reason;
  if (first || (is_failure(c.verdict) && verdict != Verdict::kNonfinite)) verdict = c.verdict;
}

}  // namespace tigon
