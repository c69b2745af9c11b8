// SPDX-License-Identifier: Apache-2.0
// What the test data of a contract show.
#include "harness/tests/visibility.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/run/inputs/inputs.h"
#include "harness/run/memory/convert.h"
#include "harness/tests/trivial_outputs.h"
#include "harness/tests/visibility_cases.h"

namespace tigon {

namespace {

// Notes the output that differs most between two problems, of which the second is `changed`.
void note_change(const SolvedProblem& plain, const Problem& changed, VisibilityCheck* check) {
  const auto other = oracle_values(changed);
  for (const CaseTensor& t : plain.problem.tensors) {
    const auto output = other.find(t.info->name);
    if (!t.is_output || output == other.end()) continue;
    plain.note_distance(t, output->second,
                        fmt::format("{} of {}", t.info->name, case_id(plain.problem.c)), check);
  }
}

// Changes the option, or the presence of the optional tensor, of this name.
VisibilityCheck check_option(const VisibilityCases& cases, const std::string& name,
                             const std::string& what) {
  VisibilityCheck check = cases.check_of(what);
  const auto hidden = cases.pass().invisible.find(name);
  check.must_show = hidden == cases.pass().invisible.end();
  for (const OptionSet& set : cases.op().option_sets) {
    const OptionSet with = cases.options_of_pass(set);
    if (!with.count(name) || (check.must_show && check.passed())) continue;
    OptionSet without = with;
    without.erase(name);
    cases.with_options(with, &check, [&](const Case& c) {
      Case other = c;
      other.options = without;
      note_change(cases.solved(c), make_problem(other), &check);
    });
  }
  if (!check.must_show && check.passed()) check.seen = hidden->second;
  return check;
}

// Makes each value another number of its type; each index another class or row.
void perturb(const Problem& problem, CaseTensor* t) {
  const bool is_index = t->dtype == DType::kI64 || t->dtype == DType::kI32;
  const InputPlan plan = plan_of(input_set(*problem.op, problem.c.inputs), t->info->name);
  const double count =
      is_index ? static_cast<double>(plan.below.value().integer(problem.binding)) : 0;
  for (double& v : t->input)
    if (!is_index)
      v = 1.25 * v + 0.25;
    else if (v >= 0 && v < count)
      v = std::fmod(v + 1, count);
  const auto bytes = narrow(t->input, t->dtype);
  t->input = widen(bytes.data(), t->input.size(), t->dtype);
}

VisibilityCheck check_input(const VisibilityCases& cases, const std::string& name) {
  VisibilityCheck check = cases.check_of("input " + name);
  cases.with_each_option_set(&check, [&](const Case& c) {
    if (!cases.has(c, name)) return;
    const SolvedProblem& plain = cases.solved(c);
    Problem changed = plain.problem;
    for (CaseTensor& t : changed.tensors)
      if (t.info->name == name) perturb(plain.problem, &t);
    note_change(plain, changed, &check);
  });
  return check;
}

VisibilityCheck check_seed(const VisibilityCases& cases) {
  VisibilityCheck check = cases.check_of("another seed");
  cases.with_options({}, &check, [&](const Case& c) {
    Case other = c;
    ++other.seed;
    note_change(cases.solved(c), make_problem(other), &check);
  });
  return check;
}

}  // namespace

std::vector<VisibilityCheck> visibility_of(const OpSpec& op, const Pass& pass, DType dtype) {
  const VisibilityCases cases(op, pass, dtype);
  std::vector<VisibilityCheck> checks;
  for (const OptionInfo& o : pass.options)
    checks.push_back(check_option(cases, o.name, "option " + o.name));
  for (const TensorInfo& t : pass.tensors) {
    if (t.role != Role::kIn && t.role != Role::kInOut) continue;
    if (t.is_optional)
      checks.push_back(check_option(cases, t.name, fmt::format("tensor {} left out", t.name)));
    checks.push_back(check_input(cases, t.name));
  }
  checks.push_back(check_seed(cases));
  const auto trivial = trivial_outputs_of(cases);
  checks.insert(checks.end(), trivial.begin(), trivial.end());
  return checks;
}

std::string text_of(const VisibilityCheck& check) {
  const std::string who =
      fmt::format("{} {} {} {}", check.op, check.pass, name_of(check.dtype), check.what);
  if (!check.must_show && check.passed())
    return fmt::format("{}: must not show: {}", who, check.seen);
  if (!check.must_show)
    return fmt::format("{}: declared invisible, but moves by {:.3g} budgets: {}", who,
                       check.budgets, check.seen);
  return fmt::format("{}: {:.3g} budgets: {}", who, check.budgets, check.seen);
}

}  // namespace tigon
