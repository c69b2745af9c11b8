// SPDX-License-Identifier: Apache-2.0
// The score of planted faults.
#include "harness/cli/text/score_table.h"

#include "harness/cli/text/terminal.h"

namespace tigon::cli {
namespace {

std::string shortened(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

void ScoreTable::add(const MutantResult& r) {
  survived_ += r.outcome == MutantOutcome::kSurvived;
  const std::string dtype = name_of(r.dtype);
  if (r.outcome == MutantOutcome::kEquivalent) {
    excused_[{r.mutant->name, r.reason}].insert(fmt::format("{} {} {}", r.op, r.pass, dtype));
  } else if (r.outcome == MutantOutcome::kNotApplicable) {
    not_run_[r.reason].insert(r.mutant->name);
  } else if (r.mutant->group == MutantGroup::kSampled) {
    by_group_[{name_of(r.mutant->group), r.op}].add(r.outcome == MutantOutcome::kCaught);
    total_.add(r.outcome == MutantOutcome::kCaught);
  } else {
    by_op_[{name_of(r.mutant->group), r.op}][dtype].add(r.outcome == MutantOutcome::kCaught);
    total_.add(r.outcome == MutantOutcome::kCaught);
  }
}

void ScoreTable::add(const ExternalResult& r) {
  if (!r.applies) {
    not_run_[r.by].insert(r.name);
    return;
  }
  by_group_[{r.group, ""}].add(r.caught);
  total_.add(r.caught);
}

bool ScoreTable::is_enough(int percent, int failed) const {
  return failed <= survived_ && 100 * total_.caught >= percent * total_.planted;
}

void ScoreTable::print() const {
  if (!by_op_.empty())
    fmt::print("\n{:<12} {:<22} {:>9} {:>9} {:>9}\n", "group", "op", "f32", "bf16", "f16");
  for (const auto& [row, scores] : by_op_) {
    const auto cell = [&scores = scores](const char* dtype) {
      const auto found = scores.find(dtype);
      return found == scores.end() ? std::string("-") : found->second.text();
    };
    fmt::print("{:<12} {:<22} {:>9} {:>9} {:>9}\n", row.first, row.second, cell("f32"),
               cell("bf16"), cell("f16"));
  }
  for (const auto& [row, score] : by_group_)
    fmt::print("{:<12} {:<22} {:>9}\n", row.first, row.second, score.text());
  for (const auto& [fault, where] : excused_)
    fmt::print("equivalent: {} in {} runs ({}): {}\n", fault.first, where.size(), shortened(where),
               fault.second);
  for (const auto& [reason, names] : not_run_)
    fmt::print("not run here: {}: {}\n", shortened(names), reason);
  fmt::print("{}\n",
             colored(fmt::format("{} of {} planted faults caught", total_.caught, total_.planted),
                     total_.caught == total_.planted ? Color::kGreen : Color::kRed));
}

}  // namespace tigon::cli
