// SPDX-License-Identifier: Apache-2.0
// Errors that lean to one side.
#include "harness/judge/bias.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/judge/judge_fault.h"

namespace tigon {

namespace {

constexpr double kChance = 6;       // standard errors: one in 5e8 for many rows, see kLeastRows
constexpr int64_t kLeastRows = 16;  // whose spread is known to a fifth
// Few values of a 16-bit output may all be next to a tie, which every kernel decides its own way.
constexpr int64_t kLeastValues = 100;

double rounded(double value, DType type) {
  switch (type) {
    case DType::kF32:
      return static_cast<double>(static_cast<float>(value));
    case DType::kBF16:
      return static_cast<double>(bf16(value));
    case DType::kF16:
      return static_cast<double>(f16(value));
    default:
      return value;
  }
}

uint16_t bits_of(double value, DType type) {
  return type == DType::kF16 ? f16(value).bits : bf16(value).bits;
}

}  // namespace

Bias::Bias(const Budget& budget, const std::vector<int64_t>& shape)
    : budget_(budget),
      row_elements_(shape.size() > 1 ? std::max<int64_t>(1, shape.back()) : 1),
      seen_(size_of(budget.output) == 2 ? size_t{1} << 16 : 0) {}

void Bias::add(int64_t index, double got, double want, const Magnitudes& m) {
  if (const int64_t row = index / row_elements_; row != row_) {
    end_row();
    row_ = row;
  }
  const DType type = budget_.output;
  const double moved = planted(JudgeFault::kTiesOneWay) ? 0 : accumulated_error(budget_, m);
  const double counted = planted(JudgeFault::kUnevenTies) ? 0 : moved;
  const double up = got - rounded(want + moved, type) + counted;
  const double down = rounded(want - moved, type) + counted - got;
  if (!std::isfinite(up) || !std::isfinite(down)) return;  // beyond the output's range
  sums_.error += got - rounded(want, type);
  sums_.up += up;
  sums_.down += down;
  sums_.outward += want < 0 ? down : up;
  sums_.inward += want < 0 ? up : down;
  sums_.allowed += one_sided_error(budget_, m);
  if (!seen_.empty()) seen_[bits_of(got, budget_.output)] = true;
}

void Bias::end_row() {
  if (sums_.allowed > 0) {
    ++rows_;
    if (std::ssize(different_) < kLeastRows) different_.insert(sums_.error / sums_.allowed);
    up_.add(sums_.up / sums_.allowed, rows_);
    down_.add(sums_.down / sums_.allowed, rows_);
    outward_.add(sums_.outward / sums_.allowed, rows_);
    inward_.add(sums_.inward / sums_.allowed, rows_);
  }
  sums_ = {};
}

void Bias::Means::add(double value, int64_t count) {
  const double before = value - mean;
  mean += before / static_cast<double>(count);
  squares += before * (value - mean);
}

double Bias::Means::over_budget(int64_t count) const {
  const auto n = static_cast<double>(count);
  return mean / (1 + kChance * std::sqrt(squares / (n - 1) / n));
}

double Bias::over_budget() {
  end_row();
  const bool has_values =
      seen_.empty() || std::count(seen_.begin(), seen_.end(), true) >= kLeastValues;
  if (std::ssize(different_) < kLeastRows || !has_values || !bounds_one_side(budget_))
    return std::numeric_limits<double>::quiet_NaN();
  double largest = 0;
  for (const Means& means : {up_, down_, outward_, inward_})
    largest = std::max(largest, means.over_budget(rows_));
  return largest;
}

}  // namespace tigon
