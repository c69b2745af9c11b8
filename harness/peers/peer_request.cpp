// SPDX-License-Identifier: Apache-2.0
// What a peer is asked.
#include "harness/peers/peer_request.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>

#include "harness/run/inputs/inputs.h"
#include "harness/run/memory/convert.h"

namespace tigon::peers {
namespace {

bool is_input(const TensorInfo& t) { return t.role == Role::kIn || t.role == Role::kInOut; }

// To a peer, what forward keeps is an output like any other.
const char* role_in_request(Role role) {
  return role == Role::kSaved ? name_of(Role::kOut) : name_of(role);
}

// float64, row-major: exact for every type.
std::string write_values(const std::filesystem::path& folder, const std::string& name,
                         const std::vector<double>& values) {
  const auto path = folder / (name + ".input");
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(double)));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
  return path;
}

// The pass before, or null; and its case, whose options are those that it knows.
const Pass* pass_before(const Case& c, Case* before) {
  const OpSpec& op = *find_op(c.op);
  const Pass& pass = *find_pass(op, c.pass);
  if (pass.inputs_from.empty() && pass.name != "backward") return nullptr;
  const Pass* from = find_pass(op, pass.inputs_from.empty() ? "forward" : pass.inputs_from);
  *before = c;
  before->pass = from->name;
  std::erase_if(before->options, [&](const auto& option) {
    const auto same = [&](const auto& x) { return x.name == option.first; };
    return std::none_of(from->tensors.begin(), from->tensors.end(), same) &&
           std::none_of(from->options.begin(), from->options.end(), same);
  });
  return from;
}

bool is_made_by(const Pass* before, const std::string& name) {
  if (before == nullptr) return false;
  return std::any_of(before->tensors.begin(), before->tensors.end(), [&](const TensorInfo& t) {
    return t.name == name && t.role != Role::kIn && t.role != Role::kInOut;
  });
}

bool writes(const TensorInfo& t) { return t.role == Role::kOut || t.role == Role::kInOut; }

// How a peer differentiates the op: what forward returns, in its order, the gradient that is given
// for each of that, and the gradient of each input.
Json autograd_of(const OpSpec& op) {
  Json autograd = {{"outputs", Json::array()}, {"upstream", Json::object()}};
  Json& gradients = autograd["gradients"] = Json::object();
  std::set<std::string> read, returned;
  for (const TensorInfo& t : find_pass(op, "forward")->tensors) {
    if (is_input(t)) read.insert(t.name);
    if (!writes(t) || t.is_on_request) continue;
    returned.insert(t.name);
    autograd["outputs"].push_back(t.name);
  }
  for (const Pass& pass : op.passes)
    for (const TensorInfo& t : pass.tensors) {
      if (t.is_on_request) continue;
      if (is_input(t) && returned.count(t.gradient_of))
        autograd["upstream"][t.gradient_of] = t.name;
      if (writes(t) && read.count(t.gradient_of)) gradients[t.gradient_of] = t.name;
    }
  return autograd;
}

class Request {
 public:
  Request(const Case& c, const std::filesystem::path& folder, const Problem* problem)
      : folder_(folder) {
    const Pass& pass = *find_pass(*find_op(c.op), c.pass);
    Case before;
    const Pass* from = pass_before(c, &before);
    json_ = {{"op", c.op},
             {"pass", c.pass},
             {"dtype", tigon::name_of(c.dtype)},
             {"seed", c.seed},
             {"autograd", autograd_of(*find_op(c.op))},
             {"folder", folder.string()}};
    json_["tensors"] = json_["signature"] = json_["required"] = Json::array();
    json_["options"] = Json::object();
    add(c, pass, from, problem);
    if (from == nullptr) return;
    std::optional<Problem> problem_before;
    if (problem != nullptr) problem_before = make_problem(before);
    add(before, *from, from, problem_before ? &*problem_before : nullptr);
  }
  const Json& json() const { return json_; }

 private:
  // A pass' tensors and options that are not there yet; of the pass before only inputs.
  void add(const Case& c, const Pass& pass, const Pass* from, const Problem* problem) {
    const bool is_before = &pass == from;
    const Binding values = binding_of(c, *find_op(c.op), pass);
    for (const TensorInfo& t : pass.tensors) {
      if (is_input(t)) note(t, is_made_by(from, t.name));
      if (is_left_out(t, c.options) || has(t.name) || (is_before && !is_input(t))) continue;
      Json tensor = {{"name", t.name},
                     {"role", is_before ? "in" : role_in_request(t.role)},
                     {"dtype", tigon::name_of(t.dtype.at(c.dtype))},
                     {"is_on_request", t.is_on_request},
                     {"shape", Json::array()}};
      std::vector<int64_t> shape;
      for (const Expr& size : t.shape) shape.push_back(size.integer(values));
      tensor["shape"] = shape;
      if (is_input(t) && problem != nullptr)
        tensor["file"] = write_values(folder_, t.name, input_of(*problem, t.name));
      else if (is_input(t) && !is_made_by(from, t.name))
        add_plan(c, t, shape, values, &tensor);
      json_["tensors"].push_back(std::move(tensor));
    }
    for (const OptionInfo& option : pass.options) add_option(c, pass, option);
  }

  void note(const TensorInfo& t, bool is_saved) {
    json_["signature"].push_back(t.name);
    if (!t.is_optional && !is_saved) json_["required"].push_back(t.name);
  }

  bool has(const std::string& name) const {
    const Json& all = json_["tensors"];
    return std::any_of(all.begin(), all.end(), [&](const Json& t) { return t["name"] == name; });
  }

  static const std::vector<double>& input_of(const Problem& problem, const std::string& name) {
    for (const CaseTensor& t : problem.tensors)
      if (t.info->name == name) return t.input;
    throw std::logic_error("no tensor " + name);
  }

  void add_plan(const Case& c, const TensorInfo& t, const std::vector<int64_t>& shape,
                const Binding& values, Json* tensor) {
    if (!t.gradient_of.empty() && shape.size() == 1) {  // of a loss, which comes last in a training
      (*tensor)["plan"] = {{"distribution", "ones"}};
      return;
    }
    const InputPlan plan = plan_of(find_op(c.op)->inputs.front(), t.name);
    const QuickFill quick = quick_fill(plan, values);
    if (quick.kind == QuickFill::kNormal) {
      (*tensor)["plan"] = {
          {"distribution", "normal"}, {"mean", quick.mean}, {"scale", quick.scale}};
    } else if (quick.kind == QuickFill::kIndices) {
      (*tensor)["plan"] = {{"distribution", "targets"},
                           {"classes", quick.below},
                           {"ignored", quick.ignored},
                           {"ignore_index", quick.ignore_index}};
    } else {
      const DType dtype = t.dtype.at(c.dtype);
      std::vector<double> made;
      fill(plan, c.seed, shape, values, &made, dtype);
      const auto packed = narrow(made, dtype);
      (*tensor)["file"] = write_values(folder_, t.name, widen(packed.data(), made.size(), dtype));
    }
  }

  void add_option(const Case& c, const Pass& pass, const OptionInfo& option) {
    const auto given = c.options.find(option.name);
    const bool is_default = given == c.options.end();
    Json value = option.default_value;
    if (!option.choices.empty())
      value =
          is_default ? option.choices[static_cast<size_t>(option.default_value)] : given->second;
    else if (!is_default)
      value = std::stod(given->second);
    json_["options"][option.name] = {{"value", value},
                                     {"is_default", is_default},
                                     {"is_invisible", pass.invisible.count(option.name)}};
  }

  const std::filesystem::path& folder_;
  Json json_;
};

}  // namespace

Json measure_request(const Case& c, const std::filesystem::path& folder) {
  Json request = Request(c, folder, nullptr).json();
  request["do"] = "measure";
  return request;
}

Json outputs_request(const Problem& problem, const std::filesystem::path& folder) {
  Json request = Request(problem.c, folder, &problem).json();
  request["do"] = "outputs";
  return request;
}

}  // namespace tigon::peers
