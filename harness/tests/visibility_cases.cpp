// SPDX-License-Identifier: Apache-2.0
// Small cases of a pass.
#include "harness/tests/visibility_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tigon {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How far `other` is from what the oracle says, in budgets of the worst element.
double distance(const Budget& budget, const Expected& expected, const std::vector<double>& other) {
  if (other.size() != expected.value.size()) return kInfinity;
  double largest = 0;
  for (size_t i = 0; i < other.size(); ++i) {
    const double want = expected.value[i];
    if (std::isnan(want) && std::isnan(other[i])) continue;
    if (want == other[i]) continue;
    const double ratio =
        std::abs(want - other[i]) / allowed_error(budget, magnitudes_of(expected, i));
    largest = std::max(largest, std::isnan(ratio) ? kInfinity : ratio);
  }
  return largest;
}

// The largest tiny shape and one of the middle.
std::vector<std::map<std::string, int64_t>> small_shapes(const OpSpec& op) {
  std::map<std::string, int64_t> tiny, middle;
  for (const AxisPlan& a : op.axes) {
    tiny[a.axis.symbol] = a.tiny.back();
    middle[a.axis.symbol] = a.middle_size();
  }
  return {tiny, middle};
}

}  // namespace

SolvedProblem::SolvedProblem(const Case& c)
    : problem(make_problem(c)), expected(run_oracle(problem)) {}

void SolvedProblem::note_distance(const CaseTensor& output, const std::vector<double>& other,
                                  const std::string& where, VisibilityCheck* check) const {
  const double d = distance(budget_of(problem, output), expected.at(output.info->name), other);
  if (!(d > check->budgets)) return;
  check->budgets = d;
  check->seen = where;
}

VisibilityCheck VisibilityCases::check_of(std::string what) const {
  VisibilityCheck check;
  check.op = op_.name;
  check.pass = pass_.name;
  check.dtype = dtype_;
  check.what = std::move(what);
  check.seen = "by none of its cases";
  return check;
}

OptionSet VisibilityCases::options_of_pass(const OptionSet& set) const {
  OptionSet part;
  for (const auto& [name, value] : set) {
    const auto is_it = [&, n = name](const auto& x) { return x.name == n; };
    if (std::any_of(pass_.options.begin(), pass_.options.end(), is_it) ||
        std::any_of(pass_.tensors.begin(), pass_.tensors.end(), is_it))
      part[name] = value;
  }
  return part;
}

bool VisibilityCases::has(const Case& c, const std::string& tensor) const {
  return std::none_of(pass_.tensors.begin(), pass_.tensors.end(), [&](const TensorInfo& t) {
    return t.name == tensor && is_left_out(t, c.options);
  });
}

void VisibilityCases::with_options(const OptionSet& options, VisibilityCheck* check,
                                   const Visit& visit) const {
  for (const auto& shape : small_shapes(op_))
    for (const InputSet& inputs : op_.inputs) {
      Case c;
      c.op = op_.name;
      c.pass = pass_.name;
      c.impl = pass_.implementations.front().name;
      c.dtype = dtype_;
      c.axes = shape;
      c.options = options;
      c.inputs = inputs.name;
      visit(c);
      if (check->must_show && check->passed()) return;
    }
}

void VisibilityCases::with_each_option_set(VisibilityCheck* check, const Visit& visit) const {
  for (const OptionSet& set : op_.option_sets)
    if (!check->passed()) with_options(options_of_pass(set), check, visit);
}

const SolvedProblem& VisibilityCases::solved(const Case& c) const {
  const std::string id = case_id(c);
  auto found = solved_.find(id);
  if (found == solved_.end()) found = solved_.emplace(id, SolvedProblem(c)).first;
  return found->second;
}

}  // namespace tigon
