// Carries out properties.
#include "harness/run/judging/properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "harness/judge/compare.h"
#include "harness/run/executor.h"
#include "harness/run/memory/convert.h"
#include "harness/run/memory/device_case.h"
#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"
#include "kernels/device/owned_stream.h"

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
      DeviceCase on_device(problem, layout_of(call));
      return outputs_of(problem, on_device.run(call.order));
    } catch (const Refused& refused) {
      throw Refusal(refused.reason, refused.verdict == Verdict::kUnsupported);
    }
  }

  std::map<std::string, std::vector<double>> budgets(const Call& call) override {
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

  void judge(const Call& call, const HostTensors& outputs) override {
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

  Call generated(const Call& call, uint64_t seed) override {
    Case c = case_of(call);
    c.seed += seed;
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

  std::vector<HostTensors> replay(const std::vector<Call>& calls) override;
  std::vector<HostTensors> run_on_streams(const std::vector<Call>& calls, int times) override;
  bool has_streams() const override { return this_executor() == "cuda"; }

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

  static Layout layout_of(const Call& call) { return {call.shift, call.gap, call.memory_of}; }

  static std::string text_of_layout(const Call& call) {
    std::string text;
    for (const auto& [name, n] : call.shift)
      text += fmt::format("; {} is {} elements off", name, n);
    for (const auto& [name, n] : call.gap) text += fmt::format("; {} between rows of {}", n, name);
    return text;
  }

  // What the oracle says about a call, kept while its numbers are the same.
  struct Judged {
    Call call;
    Problem problem;
    std::map<std::string, Expected> expected;
  };
  const Judged& judged_of(const Call& call) {
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

  const Problem& problem_;
  std::optional<Judged> judged_;
};

// The host executor has one stream, which is everybody's.
void require_our_stream(const Implementation& implementation) {
  if (implementation.on_own_stream && this_executor() == "cuda")
    throw NotApplicable("it runs on a stream of its own");
}

std::vector<HostTensors> CaseExperiment::replay(const std::vector<Call>& calls) {
  require_our_stream(*problem_.implementation);
  std::vector<Problem> problems;
  for (const Call& call : calls) problems.push_back(problem_of(call));
  DeviceCase on_device(problems.front(), layout_of(calls.front()));
  on_device.run(0);  // a library may allocate in its first call
  const OwnedStream stream;
  Graph graph;
  graph.capture(stream, [&](Stream s) { on_device.call(s); });
  std::vector<HostTensors> all;
  for (size_t i = 0; i < problems.size(); ++i) {
    on_device.use(problems[i]);
    on_device.fill(static_cast<int>(i));
    device_synchronize();  // uploads are in the default stream's order
    graph.replay(stream);
    stream_synchronize(stream);
    all.push_back(outputs_of(problems[i], on_device.collect()));
  }
  return all;
}

// A problem on a stream of its own. Inputs wait elsewhere in device memory, behind a delay.
class Streamed {
 public:
  explicit Streamed(const Problem& problem) : problem_(problem), device_case_(problem) {
    device_case_.run(0);
    device_case_.fill(0);
    for (const CaseTensor& t : problem.tensors) {
      const TensorRef& ref = device_case_.bound().tensors.at(t.info->name);
      const size_t bytes = t.input.size() * size_of(t.dtype);
      if (!t.is_input || bytes == 0) continue;
      waiting_.push_back({ref.data, DeviceBuffer(bytes)});
      device_copy(waiting_.back().copy.data(), ref.data, bytes);
      device_fill(ref.data, kPoisons[0], bytes);
    }
  }

  void enqueue() {
    // Keeps the stream busy for so long that work on another stream would see poison.
    device_fill(delay_.data(), 0, delay_.bytes(), stream_);
    for (const Waiting& w : waiting_) device_copy(w.to, w.copy.data(), w.copy.bytes(), stream_);
    device_case_.call(stream_);
  }

  HostTensors outputs() {
    stream_synchronize(stream_);
    return outputs_of(problem_, device_case_.collect());
  }

 private:
  struct Waiting {
    void* to;
    DeviceBuffer copy;
  };
  const Problem& problem_;
  DeviceCase device_case_;
  OwnedStream stream_;
  std::vector<Waiting> waiting_;
  DeviceBuffer delay_{size_t{256} << 20};
};

std::vector<HostTensors> CaseExperiment::run_on_streams(const std::vector<Call>& calls, int times) {
  require_our_stream(*problem_.implementation);
  std::vector<Problem> problems;
  for (const Call& call : calls) problems.push_back(problem_of(call));
  std::vector<std::unique_ptr<Streamed>> streams;
  for (const Problem& p : problems) streams.push_back(std::make_unique<Streamed>(p));
  device_synchronize();
  for (int i = 0; i < times; ++i)
    for (const auto& s : streams) s->enqueue();
  std::vector<HostTensors> all;
  for (const auto& s : streams) all.push_back(s->outputs());
  return all;
}

}  // namespace

std::vector<Property> properties_of(const Pass& pass) {
  std::vector<Property> all = pass.properties;
  std::vector<Property> common = common_properties();
  if (has_alias(pass)) common.push_back(in_place());
  const auto declared = [&](const Property& p) {  // by the pass itself, in words of its own
    return std::any_of(pass.properties.begin(), pass.properties.end(),
                       [&](const Property& own) { return own.name == p.name; });
  };
  for (Property& p : common)
    if (!declared(p)) all.push_back(std::move(p));
  return all;
}

std::optional<Property> find_property(const Pass& pass, const std::string& name) {
  for (Property& p : properties_of(pass))
    if (p.name == name) return std::move(p);
  return std::nullopt;
}

std::vector<std::string> property_names() {
  std::set<std::string> names;
  for (const OpSpec& op : all_ops())
    for (const Pass& pass : op.passes)
      for (const Property& p : properties_of(pass)) names.insert(p.name);
  return {names.begin(), names.end()};
}

void check_property(const Problem& problem, CheckResult* result) {
  const std::optional<Property> property = find_property(*problem.pass, problem.c.property);
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
    throw violated(e.unsupported ? Verdict::kUnsupported : Verdict::kRuntimeError, e);
  }
}

}  // namespace tigon
