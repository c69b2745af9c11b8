// SPDX-License-Identifier: Apache-2.0
// What tigon check prints while it runs.
#include "harness/cli/text/check_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/cli/text/failure.h"

namespace tigon::cli {
namespace {

constexpr int kMostAlike = 3;  // failures with the same reason that are shown; all are recorded

}  // namespace

void CheckPrinter::add(const CheckResult& r, const Diagnosis* diagnosis) {
  const std::string group = fmt::format("{} {} {} [{}]", r.c.op, r.c.pass, r.c.impl, r.executor);
  if (group != group_) end_group();
  group_ = group;
  note(r);
  print(r, diagnosis);
  progress_->step(case_id(r.c));
}

// Counts a result in its group.
void CheckPrinter::note(const CheckResult& r) {
  tally_.add(r.verdict);
  if (is_skip(r.verdict))
    ++skips_[r.reason];
  else
    cases_.push_back({r.c, is_failure(r.verdict)});
  for (const OutputResult& output : r.outputs)
    if (output.error_over_budget > worst_ || std::isnan(worst_)) worst_ = output.error_over_budget;
}

void CheckPrinter::print(const CheckResult& r, const Diagnosis* diagnosis) {
  if (is_failure(r.verdict) && diagnosis)
    progress_->line(failure_lines(r, *diagnosis));
  else if (is_failure(r.verdict) && (mixed_ || alike_[r.reason]++ < kMostAlike))
    progress_->line(failure_line(r));
  else if (verbose_)
    progress_->line(fmt::format("{} {}{}{}", name_of(r.verdict), case_id(r.c),
                                r.reason.empty() ? "" : ": ", r.reason));
}

void CheckPrinter::end_group() {
  if (group_.empty() || mixed_) return;
  const Color color = tally_.failed() > 0   ? Color::kRed
                      : tally_.passed() > 0 ? Color::kGreen
                                            : Color::kYellow;
  progress_->line(fmt::format("{:<60} {}; {}", group_, colored(tally_.line(), color), outcome()));
  for (const auto& [reason, times] : alike_)
    if (times > kMostAlike)
      progress_->line(fmt::format("  {} more fail alike: {}", times - kMostAlike, reason));
  if (const std::string pattern = case_pattern(cases_); !pattern.empty())
    progress_->line("  what fails: " + pattern);
  group_.clear();
  tally_ = {};
  cases_.clear();
  alike_.clear();
  skips_.clear();
  worst_ = 0;
}

// Of a group that was skipped as a whole, why.
std::string CheckPrinter::outcome() const {
  if (tally_.passed() + tally_.failed() > 0)
    return fmt::format("worst error {:.2g} of the budget", worst_);
  const auto most = std::max_element(skips_.begin(), skips_.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  const size_t others = skips_.size() - 1;
  return most->first + (others > 0 ? fmt::format(" (and {} other reasons)", others) : "");
}

}  // namespace tigon::cli
