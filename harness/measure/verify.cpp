// SPDX-License-Identifier: Apache-2.0
// Outputs of measured calls against the oracle.
#include "harness/measure/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/run/inputs/inputs.h"

namespace tigon {
namespace {

constexpr int64_t kLeastRows = 4, kMostRows = 64;
constexpr int64_t kDearRows = 16;  // whose oracle has products, over a whole vocabulary
constexpr int64_t kColumns = 16;   // of sums over rows, and of inputs that are 0 elsewhere

const TensorInfo& info_of(const Pass& pass, const std::string& name) {
  return *std::find_if(pass.tensors.begin(), pass.tensors.end(),
                       [&](const TensorInfo& t) { return t.name == name; });
}

// Elements of the tensors' rows in one row of the case.
int64_t row_elements(const CallSet& set, const std::string& row_axis) {
  int64_t elements = 1;
  for (const auto& [name, ref] : set.bound().tensors) {
    const TensorInfo& info = info_of(set.pass(), name);
    if (!has_axis(info, set.bound().values, row_axis)) continue;
    int64_t row = 1;
    for (size_t d = 1; d < ref.shape.size(); ++d) row *= ref.shape[d];
    elements += row;
  }
  return elements;
}

std::string tensor_of_targets(const CallSet& set) {
  for (const auto& [name, ref] : set.bound().tensors)
    if (quick_fill(plan_of(set.op().inputs.front(), name), set.bound().values).kind ==
        QuickFill::kIndices)
      return name;
  return "";
}

// Whether a row's results depend on how many rows there are: a mean is divided by that.
bool rows_share(const OpSpec& op, const Case& c) {
  return std::any_of(op.huge_options.begin(), op.huge_options.end(), [&](const auto& alone) {
    const auto found = c.options.find(alone.first);
    return found == c.options.end() || found->second != alone.second;
  });
}

// Indices that choose among rows of another tensor: a sample would not have those rows.
std::string tensor_that_chooses_rows(const CallSet& set, const std::string& row_axis) {
  const auto chooses = [&](const InputPlan& plan) {
    return plan.below && follows(*plan.below, set.bound().values, row_axis);
  };
  for (const auto& [name, ref] : set.bound().tensors)
    if (chooses(plan_of(set.op().inputs.front(), name))) return name;
  return "";
}

// The worst element's row is one of the sample; says which of the case it is.
std::string in_the_case(const Comparison& comparison, const Sample& sample,
                        const std::string& row_axis) {
  const auto rows = sample.find(row_axis);
  const std::vector<int64_t>& index = comparison.result.worst_index;
  if (rows == sample.end() || index.empty() || comparison.verdict == Verdict::kPassed)
    return comparison.reason;
  const auto at = static_cast<size_t>(index.front());
  if (at >= rows->second.size()) return comparison.reason;
  return fmt::format("{}; of {} sampled rows, the worst is row {}", comparison.reason,
                     rows->second.size(), rows->second[at]);
}

}  // namespace

Verification::Verification(const Case& c, CallSet& set, int64_t elements)
    : case_(c), row_axis_(set.op().axes.front().axis.symbol), targets_(tensor_of_targets(set)) {
  set.fill_inputs(kTimedSeed);
  choose_views(set, elements);
  for (View& view : views_) ask_oracle(&view, set);
}

void Verification::choose_views(const CallSet& set, int64_t elements) {
  const Pass& pass = set.pass();
  const auto size = [&](const std::string& axis) { return case_.axes.at(axis); };
  if (size(row_axis_) == 0) return;
  const bool is_dear = !pass.zero_columns.empty();
  const int64_t per_row = row_elements(set, row_axis_) / (is_dear ? kColumns : 1) + 1;
  const int64_t count = std::clamp(elements / per_row, kLeastRows, is_dear ? kDearRows : kMostRows);
  View rows, columns;
  rows.ignores_others = rows_share(set.op(), case_) || is_dear;
  rows.sample[row_axis_] =
      choose_indices(count, size(row_axis_), stream_key(case_.seed, row_axis_));
  const auto choose_columns = [&](const std::string& axis, View* view) {
    if (!axis.empty())
      view->sample[axis] = choose_indices(kColumns, size(axis), stream_key(case_.seed, axis));
  };
  for (const ZeroColumns& zero : pass.zero_columns) choose_columns(zero.axis, &rows);
  choose_columns(pass.sums_by, &columns);
  choose_outputs(set, &rows, &columns);
  for (View* view : {&rows, &columns})
    if (!view->outputs.empty()) views_.push_back(std::move(*view));
}

// Which outputs each view compares; says why none does.
void Verification::choose_outputs(const CallSet& set, View* rows, View* columns) {
  const std::string& sums_by = set.pass().sums_by;
  const int64_t all = case_.axes.at(row_axis_);
  const bool has_all = static_cast<int64_t>(rows->sample.at(row_axis_).size()) == all;
  const std::string chooser = has_all ? "" : tensor_that_chooses_rows(set, row_axis_);
  std::vector<std::string> left;
  for (const TensorInfo& t : set.pass().tensors) {
    if (!t.is_output() || set.bound().tensors.count(t.name) == 0) continue;
    const auto has = [&](const std::string& axis) {
      return !axis.empty() && has_axis(t, set.bound().values, axis);
    };
    const bool in_rows = rows->ignores_others ? !targets_.empty() : has(row_axis_);
    const bool in_columns = !rows->ignores_others && !has(row_axis_) && has(sums_by);
    if (chooser.empty() && (in_rows || in_columns))
      (in_rows ? rows : columns)->outputs.push_back(t.name);
    else
      left.push_back(t.name);
  }
  if (left.empty()) return;
  const std::string why = chooser.empty() ? "made of" : chooser + " chooses among";
  not_compared_ = fmt::format("{}: {} all {} rows, which are too many for the oracle",
                              fmt::join(left, ", "), why, all);
}

void Verification::ask_oracle(View* view, const CallSet& set) const {
  Case small = case_;
  for (const auto& [axis, chosen] : view->sample)
    small.axes[axis] = static_cast<int64_t>(chosen.size());
  std::map<std::string, std::vector<double>> inputs;
  for (const TensorInfo& t : set.pass().tensors)
    if (const auto found = set.bound().tensors.find(t.name);
        t.is_input() && found != set.bound().tensors.end())
      inputs[t.name] = sampled(t, found->second, set.bound().values, view->sample);
  view->problem = make_problem(small, inputs);
  view->expected = run_oracle(view->problem);
}

// The rows outside of the sample have an ignored target, those in it zeros outside of its columns.
void Verification::ignore_others(const View& view, CallSet& set) const {
  const std::vector<int64_t>& rows = view.sample.at(row_axis_);
  const Binding& values = set.bound().values;
  const TensorInfo& targets = info_of(set.pass(), targets_);
  const std::vector<double> kept =
      sampled(targets, set.bound().tensors.at(targets_), values, {{row_axis_, rows}});
  std::vector<double> all(static_cast<size_t>(case_.axes.at(row_axis_)), values.at("ignore_index"));
  for (size_t i = 0; i < rows.size(); ++i) all[static_cast<size_t>(rows[i])] = kept[i];
  set.overwrite(targets_, 0, all);
  for (const ZeroColumns& zero : set.pass().zero_columns) zero_others(view, zero, set);
}

void Verification::zero_others(const View& view, const ZeroColumns& zero, CallSet& set) const {
  const auto& [axis, tensor] = zero;
  const std::vector<int64_t>&rows = view.sample.at(row_axis_), &columns = view.sample.at(axis);
  const std::vector<double> some = sampled(
      info_of(set.pass(), tensor), set.bound().tensors.at(tensor), set.bound().values, view.sample);
  const int64_t row_size = case_.axes.at(axis);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> row(static_cast<size_t>(row_size), 0.0);
    for (size_t j = 0; j < columns.size(); ++j)
      row[static_cast<size_t>(columns[j])] = some[i * columns.size() + j];
    set.overwrite(tensor, rows[i] * row_size, row);
  }
}

std::vector<uint64_t> Verification::run(const Contender& contender, CallSet& set,
                                        const View& view) const {
  set.fill_inputs(kTimedSeed);
  if (view.ignores_others) ignore_others(view, set);
  set.poison_outputs();
  call_once(contender, set, nullptr);
  device_synchronize();
  return set.fingerprints();
}

std::string Verification::places(const View& view) const {
  std::vector<std::string> parts;
  for (const auto& [axis, chosen] : view.sample)
    parts.push_back(fmt::format("{} of {} {}", chosen.size(), case_.axes.at(axis),
                                axis == row_axis_ ? "rows" : "columns"));
  return fmt::format("{} in {}{}", fmt::join(view.outputs, ", "), fmt::join(parts, " and "),
                     view.ignores_others ? " of a call that ignores the others" : "");
}

void Verification::compare_outputs(const View& view, const Contender& contender, const CallSet& set,
                                   Verified* verified) const {
  Problem problem = view.problem;  // its budgets are those of the implementation
  problem.implementation = contender.implementation;
  for (const CaseTensor& output : problem.tensors) {
    const std::string& name = output.info->name;
    const auto& outputs = view.outputs;
    if (!output.is_output || std::find(outputs.begin(), outputs.end(), name) == outputs.end())
      continue;
    const std::vector<double> got =
        sampled(*output.info, set.bound().tensors.at(name), set.bound().values, view.sample);
    const Comparison comparison =
        compare(name, got, view.expected.at(name), output.shape, budget_of(problem, output));
    if (comparison.verdict == Verdict::kPassed || verified->verdict != Verdict::kPassed) continue;
    verified->verdict = comparison.verdict;
    const bool has_rows = has_axis(*output.info, set.bound().values, row_axis_);
    verified->reason =
        has_rows ? in_the_case(comparison, view.sample, row_axis_) : comparison.reason;
  }
}

Verified Verification::of(const Contender& contender, CallSet& set) const {
  Verified verified;
  verified.not_compared = not_compared_;
  std::vector<std::string> compared;
  for (const View& view : views_) {
    const std::vector<uint64_t> fingerprints = run(contender, set, view);
    if (!view.ignores_others) verified.fingerprints = fingerprints;
    compare_outputs(view, contender, set, &verified);
    compared.push_back(places(view));
  }
  if (!compared.empty()) verified.by = fmt::format("the oracle: {}", fmt::join(compared, "; "));
  return verified;
}

void Verification::judge(const Contender& contender, CallSet& set,
                         const std::vector<Timing*>& timings) const {
  const Verified verified = of(contender, set);
  for (Timing* timing : timings) {
    if (timing->verdict != "passed") continue;
    timing->verified_by = verified.by;
    timing->not_verified = verified.not_compared;
    timing->verdict = name_of(verified.verdict);
    timing->reason = verified.reason;
    const bool can_tell = !timing->fingerprints.empty() && !verified.fingerprints.empty();
    if (verified.verdict != Verdict::kPassed || !can_tell ||
        timing->fingerprints == verified.fingerprints)
      continue;
    timing->verdict = name_of(Verdict::kNondeterministic);
    timing->reason = "outputs of the timed call differ from those of the call that was verified";
  }
}

}  // namespace tigon
