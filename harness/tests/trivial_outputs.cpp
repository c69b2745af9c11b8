// SPDX-License-Identifier: Apache-2.0
// Outputs of kernels that compute nothing.
#include "harness/tests/trivial_outputs.h"

#include <fmt/format.h>

#include <functional>

namespace tigon {

namespace {

// The values of a trivial output; empty where the case has none.
using Values = std::function<std::vector<double>(const SolvedProblem&, const Expected& output)>;

std::vector<double> zeros(const SolvedProblem&, const Expected& output) {
  return std::vector<double>(output.value.size());
}

std::vector<double> constant(const SolvedProblem&, const Expected& output) {
  return std::vector<double>(output.value.size(), output.value.empty() ? 0 : output.value.front());
}

Values copy_of(const std::string& input) {
  return [input](const SolvedProblem& solved, const Expected&) {
    for (const CaseTensor& t : solved.problem.tensors)
      if (t.info->name == input) return t.input;
    return std::vector<double>();
  };
}

VisibilityCheck check(const VisibilityCases& cases, const std::string& output,
                      const std::string& of_what, const Values& values) {
  VisibilityCheck check = cases.check_of(fmt::format("output {} is not {}", output, of_what));
  cases.with_each_option_set(&check, [&](const Case& c) {
    if (!cases.has(c, output)) return;
    const SolvedProblem& solved = cases.solved(c);
    for (const CaseTensor& t : solved.problem.tensors)
      if (t.info->name == output && t.is_output)
        solved.note_distance(t, values(solved, solved.expected.at(output)), case_id(c), &check);
  });
  return check;
}

}  // namespace

std::vector<VisibilityCheck> trivial_outputs_of(const VisibilityCases& cases) {
  std::vector<VisibilityCheck> checks;
  for (const TensorInfo& output : cases.pass().tensors) {
    if (output.role == Role::kIn) continue;
    checks.push_back(check(cases, output.name, "zeros", zeros));
    checks.push_back(check(cases, output.name, "a constant", constant));
    for (const TensorInfo& input : cases.pass().tensors)
      if (input.role == Role::kIn || input.role == Role::kInOut)
        checks.push_back(check(cases, output.name, input.name, copy_of(input.name)));
  }
  return checks;
}

}  // namespace tigon
