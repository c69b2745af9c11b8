// SPDX-License-Identifier: Apache-2.0
#include "kernels/python/csrc/pass.h"

#include <algorithm>
#include <stdexcept>

#include "kernels/python/csrc/json.h"

namespace tigon::torch_adapter {

namespace {

Role role_of(const std::string& name) {
  if (name == "in") return Role::kIn;
  if (name == "out") return Role::kOut;
  if (name == "inout") return Role::kInOut;
  if (name == "saved") return Role::kSaved;
  throw std::runtime_error("a tensor has the role " + name + ", which this adapter does not know");
}

TensorPlan tensor_of(const Json& json) {
  TensorPlan tensor{json.at("name").text,
                    role_of(json.at("role").text),
                    {},
                    json.at("optional").is_true(),
                    json.at("strided").is_true(),
                    {},
                    false,
                    {},
                    {}};
  for (const Json& size : json.at("shape").items) tensor.shape.push_back(size.text);
  for (const Json& input : json.at("may_alias").items) tensor.may_alias.push_back(input.text);
  return tensor;
}

// Choices are given by their index.
OptionPlan option_of(const Json& json) {
  const bool is_float = json.at("type").text == "float";
  std::string value = json.at("default").text;
  const std::vector<Json>& choices = json.at("choices").items;
  for (size_t i = 0; i < choices.size(); ++i)
    if (choices[i].text == value) value = std::to_string(i);
  if (is_float && value.find_first_of(".e") == std::string::npos) value += ".0";
  return {json.at("name").text, is_float, value};
}

int index_of(const Pass& pass, const std::string& name) {
  for (size_t i = 0; i < pass.tensors.size(); ++i)
    if (pass.tensors[i].name == name) return static_cast<int>(i);
  return -1;
}

bool is_argument(const TensorPlan& t) {
  return t.role == Role::kIn || (t.role == Role::kInOut && !t.is_optional);
}

// NAME_out beside an inout NAME: where its new values go.
bool is_out_form(const Pass& pass, const TensorPlan& t) {
  constexpr char kSuffix[] = "_out";
  const size_t length = t.name.size(), suffix = sizeof kSuffix - 1;
  if (length <= suffix || t.name.compare(length - suffix, suffix, kSuffix) != 0) return false;
  const int inout = index_of(pass, t.name.substr(0, length - suffix));
  return inout >= 0 && pass.tensors[static_cast<size_t>(inout)].role == Role::kInOut;
}

// What the operator takes and gives. A tensor that is changed in place is copied first, unless the
// pass has another place for the result; one that may be left out is not offered.
void assign_roles(Pass* pass) {
  int bits = 0;
  for (int i = 0; i < static_cast<int>(pass->tensors.size()); ++i) {
    const TensorPlan& t = pass->tensors[static_cast<size_t>(i)];
    if (is_argument(t)) pass->arguments.push_back(i);
    if (t.role == Role::kInOut && !t.is_optional && index_of(*pass, t.name + "_out") < 0)
      pass->results.push_back({i, i, -1});
    if (t.role == Role::kOut || t.role == Role::kSaved)
      pass->results.push_back({i, -1, t.is_optional && !is_out_form(*pass, t) ? bits++ : -1});
  }
  pass->has_want = bits > 0;
}

// The sizes of results that some argument has, too.
void find_sources(Pass* pass) {
  const std::string& rows = pass->tensors[0].shape[0];
  for (TensorPlan& t : pass->tensors) {
    t.has_rows = !t.shape.empty() && t.shape[0] == rows;
    for (const std::string& size : t.shape) {
      TensorPlan::Source source;
      for (const int a : pass->arguments) {
        const TensorPlan& argument = pass->tensors[static_cast<size_t>(a)];
        if (argument.is_optional || source.tensor >= 0) continue;
        const auto at = std::find(argument.shape.begin(), argument.shape.end(), size);
        if (at != argument.shape.end()) source = {a, static_cast<int>(at - argument.shape.begin())};
      }
      t.sources.push_back(source);
    }
  }
}

Pass pass_of(const std::string& name, const Json& json) {
  Pass pass;
  pass.name = name;
  for (const Json& tensor : json.at("tensors").items) pass.tensors.push_back(tensor_of(tensor));
  for (const Json& option : json.at("options").items) pass.options.push_back(option_of(option));
  if (pass.tensors.empty() || pass.tensors[0].shape.empty() || pass.tensors.size() > kMostTensors ||
      pass.options.size() > kMostOptions)
    throw std::runtime_error(name + " has more tensors or options than this adapter can hold");
  assign_roles(&pass);
  find_sources(&pass);
  return pass;
}

void add_op(const tigon_op* op, const Json& json, Pass* pass) {
  const auto dtype = static_cast<size_t>(op->dtype);
  pass->ops[dtype] = op;
  for (size_t i = 0; i < pass->tensors.size(); ++i)
    pass->tensors[i].dtype[dtype] = adapter::dtype_of(json.at("tensors").items[i].at("dtype").text);
}

}  // namespace

std::string Pass::schema() const {
  // Defaults of tensors only where nothing without one follows.
  size_t required = 0;
  for (size_t k = 0; k < arguments.size(); ++k)
    if (!tensors[static_cast<size_t>(arguments[k])].is_optional) required = k + 1;
  std::string takes, gives;
  char changed = 'a';
  const auto add = [](std::string* list, const std::string& item) {
    *list += (list->empty() ? "" : ", ") + item;
  };
  for (size_t k = 0; k < arguments.size(); ++k) {
    const TensorPlan& t = tensors[static_cast<size_t>(arguments[k])];
    const bool is_changed = std::any_of(results.begin(), results.end(),
                                        [&](const Result& r) { return r.over == arguments[k]; });
    const std::string set = is_changed ? std::string("(") + changed++ + "!)" : "";
    add(&takes,
        "Tensor" + set + (t.is_optional ? "? " : " ") + t.name + (k >= required ? "=None" : ""));
  }
  for (const OptionPlan& o : options)
    add(&takes, (o.is_float ? "float " : "int ") + o.name + "=" + o.default_text);
  if (has_want) add(&takes, "int want=0");
  for (const Result& r : results) {
    if (r.over >= 0) continue;
    add(&gives,
        "Tensor " + tensors[static_cast<size_t>(r.tensor)].name + (r.copy_of >= 0 ? "_out" : ""));
  }
  return name + "(" + takes + ") -> (" + gives + ")";
}

std::optional<Pass> Pass::in_place() const {
  Pass form = *this;
  form.name += "_";
  std::vector<int> free = arguments;
  for (Result& r : form.results) {
    if (r.copy_of >= 0 || r.wanted_bit >= 0) continue;
    for (const std::string& input : tensors[static_cast<size_t>(r.tensor)].may_alias) {
      const auto at = std::find(free.begin(), free.end(), index_of(*this, input));
      if (r.over >= 0 || at == free.end()) continue;
      r.over = *at;
      free.erase(at);
    }
  }
  const bool has_any = std::any_of(form.results.begin(), form.results.end(),
                                   [](const Result& r) { return r.over >= 0; });
  return has_any ? std::optional(form) : std::nullopt;
}

std::vector<Pass> passes_of(const Library& library) {
  std::vector<Pass> passes;
  for (int32_t i = 0; const tigon_op* op = library.op_at(i); ++i) {
    std::string name = op->name;
    std::replace(name.begin(), name.end(), '.', '_');
    const Json json = parse_json(library.describe(op));
    auto pass =
        std::find_if(passes.begin(), passes.end(), [&](const Pass& p) { return p.name == name; });
    if (pass == passes.end()) pass = passes.insert(pass, pass_of(name, json));
    add_op(op, json, &*pass);
  }
  for (size_t i = 0, count = passes.size(); i < count; ++i)
    if (const auto form = passes[i].in_place()) passes.push_back(*form);
  return passes;
}

}  // namespace tigon::torch_adapter
