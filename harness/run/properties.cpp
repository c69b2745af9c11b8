// Carries out properties.
#include "harness/run/properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/judge/compare.h"
#include "harness/run/convert.h"
#include "harness/run/executor.h"
#include "harness/run/placed.h"
#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"

namespace tigon {

namespace {

HostTensors outputs_of(const Problem& problem, const OutputBytes& bytes) {
  HostTensors outputs;
  for (const CaseTensor& t : problem.tensors)
    if (const auto found = bytes.find(t.info->name); found != bytes.end())
      outputs[t.info->name] = {
          t.dtype, t.shape,
          widen(found->second.data(), found->second.size() / size_of(t.dtype), t.dtype)};
  return outputs;
}

// The implementation that the case names, on this executor.
class CaseExperiment : public Experiment {
 public:
  explicit CaseExperiment(const Problem& problem) : problem_(problem) {
    base_.pass = problem.c.pass;
    base_.dtype = problem.c.dtype;
    base_.axes = problem.c.axes;
    base_.options = problem.c.options;
    take_inputs(problem, &base_);
  }

  HostTensors run(const Call& call) override {
    const Problem problem = problem_of(call);
    try {
      Placed placed(problem, {call.shift, call.gap, call.memory_of});
      return outputs_of(problem, placed.run(call.order));
    } catch (const Stop& stop) {
      throw_refusal(stop);
      throw;
    }
  }

  std::map<std::string, std::vector<double>> budgets(const Call& call) override {
    const Problem problem = problem_of(call);
    const auto expected = run_oracle(problem);
    std::map<std::string, std::vector<double>> all;
    for (const CaseTensor& t : problem.tensors) {
      if (!t.is_output) continue;
      const Expected& e = expected.at(t.info->name);
      const Budget budget = budget_of(problem, t);
      for (size_t i = 0; i < e.value.size(); ++i)
        all[t.info->name].push_back(allowed_error(budget, magnitudes_of(e, i)));
    }
    return all;
  }

  void judge(const Call& call, const HostTensors& outputs) override {
    const Problem problem = problem_of(call);
    const auto expected = run_oracle(problem);
    for (const CaseTensor& t : problem.tensors) {
      if (!t.is_output) continue;
      const Comparison c = compare(t.info->name, outputs.at(t.info->name).values,
                                   expected.at(t.info->name), t.shape, budget_of(problem, t));
      if (c.verdict != Verdict::kPassed) throw Violation(c.reason);
    }
  }

  Call with_seed(const Call& call, uint64_t seed) override {
    Case c = case_of(call);
    c.seed = seed;
    Call other = call;
    take_inputs(make_problem(c), &other);
    return other;
  }

  Call with_saved(const Call& call, const OptionSet& forward_options) override {
    Problem problem = problem_of(call);
    take_saved(&problem, forward_options);
    Call other = call;
    take_inputs(problem, &other);
    return other;
  }

  const OpSpec& op() const override { return *problem_.op; }
  const Pass& pass() const override { return *problem_.pass; }

  double option(const Call& call, const std::string& name) const override {
    const Case c = case_of(call);
    return binding_of(c, *problem_.op, *find_pass(*problem_.op, c.pass)).at(name);
  }

  int dimension_of(const std::string& tensor, const std::string& axis) const override {
    Binding longer = problem_.binding;
    longer[axis] += 1;
    for (const TensorInfo& t : problem_.pass->tensors)
      for (size_t d = 0; t.name == tensor && d < t.shape.size(); ++d)
        if (t.shape[d].integer(longer) == t.shape[d].integer(problem_.binding) + 1)
          return static_cast<int>(d);
    return -1;
  }

 private:
  Case case_of(const Call& call) const {
    Case c = problem_.c;
    c.pass = call.pass;
    c.dtype = call.dtype;
    c.axes = call.axes;
    c.options = call.options;
    c.property.clear();
    return c;
  }

  Problem problem_of(const Call& call) const {
    std::map<std::string, std::vector<double>> inputs;
    for (const auto& [name, tensor] : call.inputs) inputs[name] = tensor.values;
    return make_problem(case_of(call), inputs);
  }

  static void take_inputs(const Problem& problem, Call* call) {
    call->inputs.clear();
    for (const CaseTensor& t : problem.tensors)
      if (t.is_input) call->inputs[t.info->name] = {t.dtype, t.shape, t.input};
  }

  static void throw_refusal(const Stop& stop) {
    if (stop.verdict == Verdict::kUnsupported) throw Refusal(stop.reason);
  }

  const Problem& problem_;
};

}  // namespace

std::vector<Property> properties_of(const Pass& pass) { return pass.properties; }

const Property* find_property(const Pass& pass, const std::string& name) {
  for (const Property& p : pass.properties)
    if (p.name == name) return &p;
  return nullptr;
}

std::vector<std::string> property_names() {
  std::set<std::string> names;
  for (const OpSpec& op : all_ops())
    for (const Pass& pass : op.passes)
      for (const Property& p : properties_of(pass)) names.insert(p.name);
  return {names.begin(), names.end()};
}

void check_property(const Problem& problem, CheckResult* result) {
  const Property* property = find_property(*problem.pass, problem.c.property);
  if (!property) throw std::logic_error("no property " + problem.c.property);
  const auto violated = [&](Verdict verdict, const std::exception& e) {
    return Stop{verdict, fmt::format("property {}: {}", property->name, e.what())};
  };
  CaseExperiment experiment(problem);
  try {
    property->check(experiment);
    result->verdict = Verdict::kPassed;
  } catch (const Nondeterminism& e) {
    throw violated(Verdict::kNondeterministic, e);
  } catch (const Violation& e) {
    throw violated(Verdict::kIncorrectNumerical, e);
  } catch (const NotApplicable& e) {
    throw violated(Verdict::kUnsupported, e);
  } catch (const Refusal& e) {
    throw violated(Verdict::kUnsupported, e);
  }
}

}  // namespace tigon
