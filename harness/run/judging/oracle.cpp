// SPDX-License-Identifier: Apache-2.0
// Inputs and expected outputs of a case.
#include "harness/run/judging/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <limits>

#include "harness/run/inputs/inputs.h"
#include "harness/run/memory/convert.h"

namespace tigon {

namespace {

using Values = std::map<std::string, std::vector<double>>;

std::vector<int64_t> shape_of(const TensorInfo& info, const Binding& binding) {
  std::vector<int64_t> shape;
  for (const Expr& e : info.shape) shape.push_back(e.integer(binding));
  return shape;
}

size_t size_of_shape(const std::vector<int64_t>& shape) {
  size_t n = 1;
  for (int64_t s : shape) n *= static_cast<size_t>(s);
  return n;
}

std::vector<double> rounded(const std::vector<double>& values, DType dtype) {
  const auto bytes = narrow(values, dtype);
  return widen(bytes.data(), values.size(), dtype);
}

// Inputs that are given are taken as they are.
std::vector<CaseTensor> tensors_of(const Case& c, const OpSpec& op, const Pass& pass,
                                   const Binding& binding, const Values& given = {}) {
  const InputSet& set = input_set(op, c.inputs);
  std::vector<CaseTensor> tensors;
  for (const TensorInfo& info : pass.tensors) {
    if (is_left_out(info, c.options)) continue;
    CaseTensor t;
    t.info = &info;
    t.dtype = info.dtype.at(c.dtype);
    t.shape = shape_of(info, binding);
    t.is_input = info.is_input();
    t.is_output = info.is_output();
    if (const auto found = given.find(info.name); t.is_input && found != given.end()) {
      if (found->second.size() != size_of_shape(t.shape))
        throw std::logic_error(
            fmt::format("{}: {} values for input {}", case_id(c), found->second.size(), info.name));
      t.input = found->second;
    } else if (t.is_input) {
      fill(plan_of(set, info.name), c.seed, t.shape, binding, &t.input, t.dtype);
      t.input = rounded(t.input, t.dtype);
    }
    tensors.push_back(std::move(t));
  }
  return tensors;
}

// Calls an oracle on copies of the inputs; outputs start as NaN, so that one that it forgets shows.
Values values_of(const Oracle& oracle, const Problem& problem) {
  Bound bound;
  bound.values = problem.binding;
  std::map<std::string, std::vector<std::byte>> storage;
  for (const CaseTensor& t : problem.tensors) {
    const DType dtype = t.info->dtype.at(DType::kF64);
    const std::vector<double> nan(t.is_input ? 0 : size_of_shape(t.shape),
                                  std::numeric_limits<double>::quiet_NaN());
    auto& bytes = storage[t.info->name] = narrow(t.is_input ? t.input : nan, dtype);
    bytes.reserve(1);  // never a null pointer, which means "left out"
    TensorRef ref{bytes.data(), dtype, t.shape, std::vector<int64_t>(t.shape.size(), 1)};
    for (size_t d = t.shape.size(); d-- > 1;) ref.stride[d - 1] = ref.stride[d] * t.shape[d];
    bound.tensors[t.info->name] = ref;
  }
  oracle(bound);
  Values outputs;
  for (const CaseTensor& t : problem.tensors)
    if (t.is_output)
      outputs[t.info->name] = widen(storage[t.info->name].data(), size_of_shape(t.shape),
                                    t.info->dtype.at(DType::kF64));
  return outputs;
}

// The case looked up, with the tensors that it names.
Problem look_up(const Case& c) {
  Problem problem;
  problem.c = c;
  problem.op = find_op(c.op);
  if (!problem.op) throw UsageError(fmt::format("no op '{}'", c.op));
  problem.pass = find_pass(*problem.op, c.pass);
  if (!problem.pass) throw UsageError(fmt::format("{} has no pass '{}'", c.op, c.pass));
  problem.implementation = find_implementation(*problem.pass, c.impl);
  if (!problem.implementation)
    throw UsageError(fmt::format("{} {} has no implementation '{}'", c.op, c.pass, c.impl));
  problem.binding = binding_of(c, *problem.op, *problem.pass);
  return problem;
}

bool has(const Problem& problem, const std::string& name) {
  return std::any_of(problem.tensors.begin(), problem.tensors.end(),
                     [&](const CaseTensor& t) { return t.info->name == name; });
}

// Of an implementation whose framework makes its gradients nothing is judged that forward keeps,
// and each of its passes takes what forward takes.
void differentiate(Problem* problem, const Values& given) {
  const Pass& forward = *find_pass(*problem->op, "forward");
  for (CaseTensor& t : problem->tensors)
    for (const TensorInfo& info : forward.tensors)
      if (info.role == Role::kSaved && info.name == t.info->name) t.is_output = false;
  const Binding values = binding_of(problem->c, *problem->op, forward);
  for (CaseTensor& t : tensors_of(problem->c, *problem->op, forward, values, given)) {
    if (!t.is_input || has(*problem, t.info->name)) continue;
    t.is_output = false;
    problem->tensors.push_back(std::move(t));
  }
}

// Its tensors; inputs that are given are taken as they are.
Problem problem_of(const Case& c, const Values& given) {
  Problem problem = look_up(c);
  problem.tensors = tensors_of(c, *problem.op, *problem.pass, problem.binding, given);
  if (problem.implementation->is_differentiated) differentiate(&problem, given);
  return problem;
}

}  // namespace

Problem make_problem(const Case& c) {
  Problem problem = problem_of(c, {});
  if (!problem.pass->inputs_from.empty()) take_saved(&problem, {});
  return problem;
}

Problem make_problem(const Case& c, const std::map<std::string, std::vector<double>>& inputs) {
  return problem_of(c, inputs);
}

void take_saved(Problem* problem, const OptionSet& options) {
  const Pass* source = find_pass(*problem->op, problem->pass->inputs_from);
  if (!source)
    throw std::logic_error(fmt::format("{}: no pass '{}' to take inputs from", problem->op->name,
                                       problem->pass->inputs_from));
  Problem before = *problem;
  before.pass = source;
  for (const auto& [name, value] : options) before.c.options[name] = value;
  before.binding = binding_of(before.c, *problem->op, *source);
  before.tensors = tensors_of(before.c, *problem->op, *source, before.binding);
  const Values saved = values_of(source->oracle, before);
  for (CaseTensor& t : problem->tensors)
    if (const auto found = saved.find(t.info->name); t.is_input && found != saved.end())
      t.input = rounded(found->second, t.dtype);
}

namespace {

// Whether the parts of the oracle are worth threads of their own.
bool is_large(const Problem& problem) {
  size_t elements = 0;
  for (const CaseTensor& t : problem.tensors) elements += size_of_shape(t.shape);
  return elements >= size_t{1} << 20;
}

}  // namespace

std::map<std::string, Expected> run_oracle(const Problem& problem) {
  const Pass& pass = *problem.pass;
  const auto when = is_large(problem) ? std::launch::async : std::launch::deferred;
  const auto part = [&](const Oracle& oracle) {
    return std::async(when, [&] { return oracle ? values_of(oracle, problem) : Values(); });
  };
  auto scales = part(pass.scale), intermediates = part(pass.intermediate),
       underflows = part(pass.underflow);
  Values value = oracle_values(problem), scale = scales.get(), intermediate = intermediates.get(),
         underflow = underflows.get();
  std::map<std::string, Expected> expected;
  for (auto& [name, v] : value)
    expected[name] = {std::move(v), std::move(scale[name]), std::move(intermediate[name]),
                      std::move(underflow[name])};
  return expected;
}

Values oracle_values(const Problem& problem) { return values_of(problem.pass->oracle, problem); }

Budget budget_of(const Problem& problem, const CaseTensor& output) {
  const auto found = problem.pass->budget.find(output.info->name);
  if (found == problem.pass->budget.end())
    throw std::logic_error(fmt::format("{} {}: no budget for {}", problem.op->name,
                                       problem.pass->name, output.info->name));
  const OutputBudget& b = found->second;
  Budget budget;
  budget.roundings = b.roundings(problem.binding);
  budget.reduction = b.reduction(problem.binding);
  budget.elementary = b.elementary + problem.implementation->elementary(problem.binding);
  budget.intermediate_roundings = b.intermediate_roundings(problem.binding);
  budget.element_roundings = problem.implementation->element_roundings(problem.binding);
  budget.output = output.dtype;
  budget.element = problem.c.dtype;
  return budget;
}

}  // namespace tigon
