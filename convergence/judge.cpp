// SPDX-License-Identifier: Apache-2.0
// Budgets for the distance of two loss curves.
#include "convergence/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "convergence/statistics.h"

namespace tigon::convergence {
namespace {

constexpr double kLambda = 4.0;  // of the rounding budgets of single ops
constexpr size_t kWindow = 10;
// Of a spike: than the lowest loss before, and than the median gradient.
constexpr double kHigher = 1.1, kLonger = 3.0;
constexpr double kLateF32Budget = 0.02;  // nats; judge.h says why

using Curve = std::vector<double>;

bool all_finite(const Curve& c) {
  return std::all_of(c.begin(), c.end(), [](double x) { return std::isfinite(x); });
}

double root_mean_square(std::span<const double> v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(1, v.size())));
}

Curve distance(const Curve& a, const Curve& b) {
  Curve d;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) d.push_back(std::abs(a[i] - b[i]));
  return d;
}

void judge_f32(const Trial& t, VerdictReport& v) {
  const double u = unit_roundoff(DType::kF32);
  const auto& [naive, fused] = t.pairs.front();
  const Curve& loss = naive->loss;
  const Curve twin = distance(loss, t.twin->loss);
  const double row = std::sqrt(static_cast<double>(naive->vocabulary));
  const double mean = std::sqrt(static_cast<double>(naive->tokens_per_step));
  double squares = 0;
  v.differences = distance(loss, fused->loss);
  v.held_out_difference = std::abs(fused->held_out_loss - naive->held_out_loss);
  for (size_t i = 0; i < loss.size(); ++i) {
    if (i >= twin.size()) {
      v.budgets.push_back(kLateF32Budget);
      continue;
    }
    const double moved = std::max(twin[i], 2 * u * loss[i]);
    squares += moved * moved;
    v.budgets.push_back(kLambda * (u * (row + mean * loss[i]) + std::sqrt(squares)));
  }
  v.held_out_budget = kLateF32Budget;
}

// Root mean square over the ten steps that end at each step.
Curve windowed(const Curve& d) {
  Curve r;
  const size_t width = std::min(kWindow, d.size());
  for (size_t i = 0; i < d.size(); ++i) {
    const size_t first = i + 1 < width ? 0 : i + 1 - width;
    r.push_back(root_mean_square(std::span(d).subspan(first, width)));
  }
  return r;
}

double last_quarter(const Curve& loss) {
  const size_t n = std::max<size_t>(1, loss.size() / 4);
  double sum = 0;
  for (double x : std::span(loss).last(n)) sum += x;
  return sum / static_cast<double>(n);
}

PairReport report_of(const Pair& p) {
  PairReport r;
  r.seed = p.naive->seed;
  r.learning_rate = p.naive->learning_rate;
  const double naive = last_quarter(p.naive->loss);
  r.last_quarter = last_quarter(p.fused->loss) - naive;
  r.last_quarter_margin = kMargin * naive;
  r.held_out = p.fused->held_out_loss - p.naive->held_out_loss;
  r.held_out_margin = kMargin * p.naive->held_out_loss;
  return r;
}

// The difference by step of the pair that is farther out there.
void add_pair(const Pair& p, VerdictReport& v) {
  const Curve d = windowed(distance(p.naive->loss, p.fused->loss));
  v.differences.resize(d.size(), 0.0);
  v.budgets.resize(d.size(), 1.0);
  for (size_t i = 0; i < d.size(); ++i) {
    const double budget = kMargin * p.naive->loss[i];
    if (d[i] / budget < v.differences[i] / v.budgets[i] && v.pairs.size() > 1) continue;
    v.differences[i] = d[i];
    v.budgets[i] = budget;
  }
  const PairReport& r = v.pairs.back();
  if (v.pairs.size() > 1 &&
      std::abs(r.held_out) / r.held_out_margin < v.held_out_difference / v.held_out_budget)
    return;
  v.held_out_difference = std::abs(r.held_out);
  v.held_out_budget = r.held_out_margin;
}

Equivalence equivalence(const char* what, const std::vector<PairReport>& pairs,
                        double PairReport::*difference, double PairReport::*margin) {
  std::vector<double> differences;
  for (const PairReport& p : pairs) differences.push_back(p.*difference);
  return two_one_sided_tests(what, differences, pairs.front().*margin, kConfidence);
}

void judge_bf16(const Trial& t, VerdictReport& v) {
  for (const Pair& p : t.pairs) {
    v.pairs.push_back(report_of(p));
    add_pair(p, v);
  }
  v.equivalence = {
      equivalence("last quarter", v.pairs, &PairReport::last_quarter,
                  &PairReport::last_quarter_margin),
      equivalence("held out", v.pairs, &PairReport::held_out, &PairReport::held_out_margin)};
}

// The reason names the first step that is over; the largest share is reported beside it.
void compare_with_budgets(VerdictReport& v) {
  double share = -1;
  for (size_t i = 0; i < v.differences.size(); ++i) {
    const int step = static_cast<int>(i);
    if (!(v.differences[i] <= v.budgets[i]) && v.first_step_over < 0) v.first_step_over = step;
    const double s = v.differences[i] / v.budgets[i];
    if (s <= share) continue;
    share = s;
    v.step_of_largest = step;
    v.largest_difference = v.differences[i];
    v.budget = v.budgets[i];
  }
  if (v.first_step_over >= 0) {
    const auto at = static_cast<size_t>(v.first_step_over);
    v.reason = fmt::format("losses differ by {:.3g} at step {}, {:.3g} is allowed",
                           v.differences[at], v.first_step_over + 1, v.budgets[at]);
  } else if (!(v.held_out_difference <= v.held_out_budget)) {
    v.reason = fmt::format("held-out losses differ by {:.3g}, {:.3g} is allowed",
                           v.held_out_difference, v.held_out_budget);
  }
  for (const PairReport& p : v.pairs)
    if (v.reason.empty() && !(std::abs(p.last_quarter) <= p.last_quarter_margin))
      v.reason = fmt::format(
          "losses of the last quarter differ by {:.3g} in the pair of seed {}, {:.3g} is allowed",
          p.last_quarter, p.seed, p.last_quarter_margin);
  for (const Equivalence& e : v.equivalence)
    if (v.reason.empty() && !e.shown())
      v.reason = fmt::format(
          "{} loss not shown to be equivalent: fused - naive within {:.3g} to {:.3g}, {:.3g} is "
          "the margin",
          e.what, e.lower, e.upper, e.margin);
  v.verdict = v.reason.empty() ? "passed" : "incorrect_numerical";
}

std::vector<const RunReport*> runs_of(const Trial& t) {
  std::vector<const RunReport*> runs;
  for (const Pair& p : t.pairs) runs.insert(runs.end(), {p.naive, p.fused});
  if (t.twin != nullptr) runs.push_back(t.twin);
  return runs;
}

bool complete(const Trial& t) {
  const RunReport& first = *t.pairs.front().naive;
  const bool f32 = first.dtype == DType::kF32;
  const size_t steps = first.loss.size();
  const size_t pairs = static_cast<size_t>(f32 ? kF32Pairs : kBF16Pairs);
  if (steps == 0 || t.pairs.size() < pairs || f32 != (t.twin != nullptr)) return false;
  const std::vector<const RunReport*> runs = runs_of(t);
  return std::all_of(runs.begin(), runs.end(), [&](const RunReport* r) {
    const size_t want = r == t.twin ? std::min<size_t>(steps, kF32TwinSteps) : steps;
    return r->complete && r->loss.size() == want;
  });
}

bool finite(const Trial& t) {
  const std::vector<const RunReport*> runs = runs_of(t);
  return std::all_of(runs.begin(), runs.end(), [&](const RunReport* r) {
    return all_finite(r->loss) && (r == t.twin || std::isfinite(r->held_out_loss));
  });
}

int first_nonfinite(const Trial& t) {
  for (size_t i = 0; i < t.pairs.front().naive->loss.size(); ++i)
    for (const RunReport* r : runs_of(t))
      if (i < r->loss.size() && !std::isfinite(r->loss[i])) return static_cast<int>(i);
  return -1;
}

// A naive run that spikes at the lowest rate that is tried; nullptr: there is none.
const RunReport* unstable(const Trial& t) {
  for (const Pair& p : t.pairs)
    if (first_spike(*p.naive) >= 0) return p.naive;
  return nullptr;
}

void judge_finite(const Trial& t, VerdictReport& v) {
  if (v.dtype == DType::kF32) {
    judge_f32(t, v);
  } else if (const RunReport* r = unstable(t)) {
    v.verdict = "runtime_error";
    v.reason =
        fmt::format("no evidence: the naive run of seed {} spikes at step {} at a rate of {:.3g}",
                    r->seed, first_spike(*r) + 1, r->learning_rate);
    return;
  } else {
    judge_bf16(t, v);
  }
  compare_with_budgets(v);
}

}  // namespace

int first_spike(const RunReport& run) {
  double lowest = HUGE_VAL;
  for (size_t i = 0; i < std::min(run.loss.size(), run.grad_norm.size()); ++i) {
    const auto at = run.grad_norm.begin() + static_cast<std::ptrdiff_t>(i);
    if (run.loss[i] > kHigher * lowest &&
        *at > kLonger * median(std::vector(run.grad_norm.begin(), at)))
      return static_cast<int>(i);
    lowest = std::min(lowest, run.loss[i]);
  }
  return -1;
}

VerdictReport judge(const Trial& t) {
  VerdictReport v;
  const auto& [naive, fused] = t.pairs.front();
  v.config = naive->config;
  v.dtype = naive->dtype;
  v.memory_ratio = static_cast<double>(fused->peak_bytes) / static_cast<double>(naive->peak_bytes);
  v.speed_ratio = fused->tokens_per_s / naive->tokens_per_s;
  if (!complete(t)) {
    v.verdict = "not_run";
    v.reason = "a run ended early";
  } else if (!finite(t)) {
    v.verdict = "nonfinite";
    v.first_step_over = first_nonfinite(t);
    v.reason = v.first_step_over < 0
                   ? "a held-out loss is not finite"
                   : fmt::format("a loss is not finite at step {}", v.first_step_over + 1);
  } else {
    judge_finite(t, v);
  }
  return v;
}

}  // namespace tigon::convergence
