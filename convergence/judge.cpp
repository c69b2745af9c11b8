// SPDX-License-Identifier: Apache-2.0
// Budgets for the distance of two loss curves.
#include "convergence/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace tigon::convergence {
namespace {

constexpr double kLambda = 4.0;  // of the rounding budgets of single ops
constexpr double kSpreadFactor = 3.0;
constexpr size_t kWindow = 10;
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

// The naive run and its twins.
std::vector<const RunReport*> naive_runs(const Trial& t) {
  std::vector<const RunReport*> runs = {t.naive};
  runs.insert(runs.end(), t.twins.begin(), t.twins.end());
  return runs;
}

std::vector<const RunReport*> fused_runs(const Trial& t) {
  std::vector<const RunReport*> runs = {t.fused};
  runs.insert(runs.end(), t.fused_twins.begin(), t.fused_twins.end());
  return runs;
}

void judge_f32(const Trial& t, VerdictReport& v) {
  const double u = unit_roundoff(DType::kF32);
  const Curve& loss = t.naive->loss;
  const Curve twin = distance(loss, t.twins.front()->loss);
  const double row = std::sqrt(static_cast<double>(t.naive->vocabulary));
  const double mean = std::sqrt(static_cast<double>(t.naive->tokens_per_step));
  double squares = 0;
  v.differences = distance(loss, t.fused->loss);
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

// Of both groups of runs, by a number of each run.
template <class F>
Equivalence equivalence(const char* what, const Trial& t, F number) {
  std::vector<double> naive, fused;
  for (const RunReport* r : naive_runs(t)) naive.push_back(number(*r));
  for (const RunReport* r : fused_runs(t)) fused.push_back(number(*r));
  return two_one_sided_tests(what, naive, fused, kMargin * naive.front(), kConfidence);
}

void judge_bf16(const Trial& t, VerdictReport& v) {
  const std::vector<const RunReport*> runs = naive_runs(t);
  v.equivalence = {
      equivalence("last quarter", t, [](const RunReport& r) { return last_quarter(r.loss); }),
      equivalence("held out", t, [](const RunReport& r) { return r.held_out_loss; })};
  Curve squares(t.naive->loss.size(), 0.0), held_out;
  double pairs = 0;
  for (size_t a = 0; a < runs.size(); ++a)
    for (size_t b = 0; b < a; ++b, ++pairs) {
      const Curve d = windowed(distance(runs[a]->loss, runs[b]->loss));
      for (size_t i = 0; i < squares.size(); ++i) squares[i] += d[i] * d[i];
      held_out.push_back(runs[a]->held_out_loss - runs[b]->held_out_loss);
    }
  v.differences = windowed(distance(t.naive->loss, t.fused->loss));
  for (double s : squares) v.budgets.push_back(kSpreadFactor * std::sqrt(s / pairs));
  v.held_out_budget = kSpreadFactor * root_mean_square(held_out);
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
  for (const Equivalence& e : v.equivalence)
    if (v.reason.empty() && !e.shown())
      v.reason = fmt::format(
          "{} loss not shown to be equivalent: fused - naive within {:.3g} to {:.3g}, {:.3g} is "
          "the "
          "margin",
          e.what, e.lower, e.upper, e.margin);
  v.verdict = v.reason.empty() ? "passed" : "incorrect_numerical";
}

bool complete(const Trial& t) {
  const bool f32 = t.naive->dtype == DType::kF32;
  const size_t steps = t.naive->loss.size();
  const size_t twin_steps = f32 ? std::min<size_t>(steps, kF32TwinSteps) : steps;
  const auto whole = [](const RunReport* r, size_t n) {
    return r->complete && r->loss.size() == n;
  };
  return steps > 0 && whole(t.naive, steps) && whole(t.fused, steps) &&
         t.twins.size() >= static_cast<size_t>(f32 ? kF32Twins : kBF16Twins) &&
         t.fused_twins.size() >= static_cast<size_t>(f32 ? 0 : kBF16FusedTwins) &&
         std::all_of(t.fused_twins.begin(), t.fused_twins.end(),
                     [&](const RunReport* r) { return whole(r, steps); }) &&
         std::all_of(t.twins.begin(), t.twins.end(),
                     [&](const RunReport* r) { return whole(r, twin_steps); });
}

bool finite(const Trial& t) {
  std::vector<const RunReport*> runs = naive_runs(t);
  for (const RunReport* r : fused_runs(t)) runs.push_back(r);
  const bool losses =
      std::all_of(runs.begin(), runs.end(), [](const RunReport* r) { return all_finite(r->loss); });
  return losses && std::isfinite(t.naive->held_out_loss) && std::isfinite(t.fused->held_out_loss);
}

int first_nonfinite(const Trial& t) {
  std::vector<const RunReport*> runs = naive_runs(t);
  for (const RunReport* r : fused_runs(t)) runs.push_back(r);
  for (size_t i = 0; i < t.naive->loss.size(); ++i)
    for (const RunReport* r : runs)
      if (i < r->loss.size() && !std::isfinite(r->loss[i])) return static_cast<int>(i);
  return -1;
}

}  // namespace

VerdictReport judge(const Trial& t) {
  VerdictReport v;
  v.config = t.naive->config;
  v.dtype = t.naive->dtype;
  v.held_out_difference = std::abs(t.naive->held_out_loss - t.fused->held_out_loss);
  v.memory_ratio =
      static_cast<double>(t.fused->peak_bytes) / static_cast<double>(t.naive->peak_bytes);
  v.speed_ratio = t.fused->tokens_per_s / t.naive->tokens_per_s;
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
    v.dtype == DType::kF32 ? judge_f32(t, v) : judge_bf16(t, v);
    compare_with_budgets(v);
  }
  return v;
}

}  // namespace tigon::convergence
