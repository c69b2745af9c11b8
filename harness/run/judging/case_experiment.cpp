// SPDX-License-Identifier: Apache-2.0
// Calls of a case.
#include "harness/run/judging/case_experiment.h"

#include <fmt/format.h>

#include "harness/judge/compare.h"
#include "harness/run/cases/pass_sets.h"
#include "harness/run/executor.h"
#include "harness/run/judging/bound_without_memory.h"
#include "harness/run/memory/convert.h"
#include "harness/run/memory/stop.h"
#include "kernels/device/runtime.h"

namespace tigon {

namespace {

void take_inputs(const Problem& problem, Call* call) {
  call->inputs.clear();
  for (const CaseTensor& t : problem.tensors)
    if (t.is_input) call->inputs[t.info->name] = {t.dtype, t.shape, t.input};
}

std::string text_of_layout(const Call& call) {
  std::string text;
  for (const auto& [name, n] : call.shift) text += fmt::format("; {} is {} elements off", name, n);
  for (const auto& [name, n] : call.gap) text += fmt::format("; {} between rows of {}", n, name);
  return text;
}

}  // namespace

HostTensors outputs_of(const Problem& problem, const OutputBytes& bytes) {
  HostTensors outputs;
  for (const CaseTensor& t : problem.tensors)
    if (const auto found = bytes.find(t.info->name); found != bytes.end())
      outputs[t.info->name] = {
          t.dtype, t.shape,
          widen(found->second.data(), found->second.size() / size_of(t.dtype), t.dtype)};
  return outputs;
}

CaseExperiment::CaseExperiment(const Problem& problem) : problem_(problem) {
  base_.pass = problem.c.pass;
  base_.dtype = problem.c.dtype;
  base_.axes = problem.c.axes;
  base_.options = problem.c.options;
  base_.skew = problem.c.skew;
  take_inputs(problem, &base_);
}

HostTensors CaseExperiment::run(const Call& call) {
  const Problem problem = problem_of(call);
  try {
    DeviceCase on_device(problem, layout_of(call));
    return outputs_of(problem, on_device.run(call.order));
  } catch (const Refused& refused) {
    throw Refusal(refused.reason, refused.verdict == Verdict::kUnsupported);
  }
}

std::map<std::string, std::vector<double>> CaseExperiment::budgets(const Call& call) {
  const Judged& judged = judged_of(call);
  std::map<std::string, std::vector<double>> all;
  for (const CaseTensor& t : judged.problem.tensors) {
    if (!t.is_output) continue;
    const Expected& e = judged.expected.at(t.info->name);
    const Budget budget = budget_of(judged.problem, t);
    std::vector<double>& allowed = all[t.info->name];
    for (size_t i = 0; i < e.value.size(); ++i)
      allowed.push_back(allowed_error(budget, magnitudes_of(e, i)));
  }
  return all;
}

void CaseExperiment::judge(const Call& call, const HostTensors& outputs) {
  const Judged& judged = judged_of(call);
  for (const CaseTensor& t : judged.problem.tensors) {
    if (!t.is_output) continue;
    const Comparison c =
        compare(t.info->name, outputs.at(t.info->name).values, judged.expected.at(t.info->name),
                t.shape, budget_of(judged.problem, t));
    if (c.verdict != Verdict::kPassed)
      throw Violation(fmt::format("{}{}", c.reason, text_of_layout(call)));
  }
}

Call CaseExperiment::generated(const Call& call, uint64_t seed) {
  Case c = case_of(call);
  c.seed += seed;
  Call other = call;
  take_inputs(make_problem(c), &other);
  return other;
}

Call CaseExperiment::with_saved(const Call& call, const OptionSet& forward_options) {
  Problem problem = problem_of(call);
  take_saved(&problem, forward_options);
  Call other = call;
  take_inputs(problem, &other);
  return other;
}

bool CaseExperiment::has_streams() const { return this_executor() == "cuda"; }

std::vector<OptionSet> CaseExperiment::option_sets() const {
  std::vector<OptionSet> sets;
  Case c = problem_.c;
  for (const OptionSet& set : problem_.op->option_sets) {
    c.options = options_for(*problem_.pass, set).value_or(OptionSet{});
    if (options_fit(*problem_.op, *problem_.pass, c)) sets.push_back(c.options);
  }
  return sets;
}

Bound CaseExperiment::placed(const Call& call) const {
  Bound bound = bound_without_memory(case_of(call), *problem_.op, *problem_.pass);
  const Implementation& impl = *problem_.implementation;
  if (impl.workspace) bound.scratch.bytes = impl.workspace(call.dtype, bound);
  return bound;
}

Status CaseExperiment::ask(const Call& call, const Bound& bound) const {
  executor_take_launched();
  Status status;
  executor_without_running(
      [&](Stream stream) { status = problem_.implementation->run(call.dtype, bound, stream); });
  device_synchronize();  // a fault of this call is this case's
  const std::vector<std::string> launched = executor_take_launched();
  if (!status.ok() && !launched.empty() && !problem_.implementation->in_steps)
    throw Violation(fmt::format("refused when {} was launched: {}", launched[0], status.reason));
  return status;
}

bool CaseExperiment::has_far_memory() const { return !on_gpu() && !executor_checks(); }

double CaseExperiment::option(const Call& call, const std::string& name) const {
  const Case c = case_of(call);
  return binding_of(c, *problem_.op, *find_pass(*problem_.op, c.pass)).at(name);
}

int CaseExperiment::dimension_of(const std::string& tensor, const std::string& axis) const {
  Binding longer = problem_.binding;
  longer[axis] += 1;
  for (const TensorInfo& t : problem_.pass->tensors)
    for (size_t d = 0; t.name == tensor && d < t.shape.size(); ++d)
      if (t.shape[d].integer(longer) == t.shape[d].integer(problem_.binding) + 1)
        return static_cast<int>(d);
  return -1;
}

Case CaseExperiment::case_of(const Call& call) const {
  Case c = problem_.c;
  c.pass = call.pass;
  c.dtype = call.dtype;
  c.axes = call.axes;
  c.options = call.options;
  c.property.clear();
  return c;
}

Problem CaseExperiment::problem_of(const Call& call) const {
  std::map<std::string, std::vector<double>> inputs;
  for (const auto& [name, tensor] : call.inputs) inputs[name] = tensor.values;
  return make_problem(case_of(call), inputs);
}

std::vector<Problem> CaseExperiment::problems_of(const std::vector<Call>& calls) const {
  std::vector<Problem> problems;
  for (const Call& call : calls) problems.push_back(problem_of(call));
  return problems;
}

const CaseExperiment::Judged& CaseExperiment::judged_of(const Call& call) {
  const auto same_numbers = [&](const Call& other) {
    return other.pass == call.pass && other.dtype == call.dtype && other.axes == call.axes &&
           other.options == call.options && other.inputs == call.inputs;
  };
  if (!judged_ || !same_numbers(judged_->call)) {
    Problem problem = problem_of(call);
    auto expected = run_oracle(problem);
    judged_ = Judged{call, std::move(problem), std::move(expected)};
  }
  return *judged_;
}

}  // namespace tigon
