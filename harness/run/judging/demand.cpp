// SPDX-License-Identifier: Apache-2.0
// Asks launchers which paths they take.
#include "harness/run/judging/demand.h"

#include <algorithm>
#include <regex>

#include "harness/run/cases/pass_sets.h"
#include "harness/run/judging/properties.h"

namespace tigon {
namespace {

constexpr char kOtherPath[] = "no launch with it takes the path",
               kOtherCalls[] = "no call of the property takes the path",
               kOtherConstants[] = "only a launch table chooses the path";

using Shape = std::map<std::string, int64_t>;

class Reach {
 public:
  Reach(const std::vector<Case>& planned, const Launches& launches)
      : planned_(planned),
        launches_(launches),
        op_(*find_op(planned.front().op)),
        pass_(*find_pass(op_, planned.front().pass)) {
    base_ = planned.front();
    base_.options.clear();
    base_.inputs = op_.inputs.front().name;
    base_.property.clear();
    base_.shift = base_.skew = base_.gap = base_.launch = 0;
    for (const OptionSet& set : op_.option_sets)
      if (const auto options = options_for(pass_, set)) sets_.insert(*options);
    choose_shapes();
  }

  Demand operator()() {
    for (const OptionSet& set : sets_)
      ask(set, [&](const Case& c, const std::string& path) {
        const std::vector<std::string> values = values_of(c);
        demand_.met[path].insert(values.begin(), values.end());
      });
    for (const InputSet& set : op_.inputs)
      if (input_set_applies(pass_, set, op_.inputs.front())) add_everywhere("inputs=" + set.name);
    for (const Property& property : properties_of(pass_))
      if (!property.of_launcher) add(property);
    const Demand::Pairs usual = demand_.met;
    for (const Case& c : planned_)
      if (c.launch != 0) add_chosen(c, usual);
    rule_out(usual);
    return std::move(demand_);
  }

 private:
  std::set<std::string> paths(const Case& c) {
    std::set<std::string> found;
    for (const std::string& kernel : launches_(c)) found.insert(path_of(kernel));
    return found;
  }

  std::vector<Case> layouts() const {
    std::vector<Case> all(3, base_);
    all[1].shift = 1;
    all[2].skew = 1;
    if (!has_strided(pass_)) return all;
    for (const int gap : {3, 16}) {  // rows that are no longer aligned, and rows that are
      all.push_back(base_);
      all.back().gap = gap;
    }
    return all;
  }

  // f(case, path) of every launch with these options.
  template <class F>
  void ask(const OptionSet& options, const F& f) {
    for (Case c : layouts())
      for (const DType dtype : op_.policies)
        for (const Shape& shape : shapes_) {
          c.dtype = dtype;
          c.axes = shape;
          c.options = options;
          for (const std::string& path : paths(c)) f(c, path);
        }
  }

  // Of shapes that take the same paths the first.
  void choose_shapes() {
    std::set<Shape> asked;
    std::set<std::vector<std::set<std::string>>> known;
    const auto has_nothing = [](const Shape& shape) {
      return std::any_of(shape.begin(), shape.end(), [](const auto& a) { return a.second == 0; });
    };
    for (const Case& c : planned_)
      if (!has_nothing(c.axes) && asked.insert(c.axes).second && known.insert(taken(c.axes)).second)
        shapes_.push_back(c.axes);
  }

  // The paths with every option set, and those in every type and layout.
  std::vector<std::set<std::string>> taken(const Shape& shape) {
    std::vector<std::set<std::string>> all;
    Case plain = base_;
    plain.axes = shape;
    for (const OptionSet& set : sets_) {
      plain.options = set;
      all.push_back(paths(plain));
    }
    for (Case c : layouts())
      for (const DType dtype : op_.policies) {
        c.axes = shape;
        c.dtype = dtype;
        all.push_back(paths(c));
      }
    return all;
  }

  void add_everywhere(const std::string& value) {
    for (auto& [path, values] : demand_.met) values.insert(value);
  }

  void add(const Property& property) {
    const auto& policies = property.policies;
    for (const OptionSet& options : property.options)
      ask(options, [&](const Case& c, const std::string& path) {
        const bool is_meant = policies.empty() || std::find(policies.begin(), policies.end(),
                                                            c.dtype) != policies.end();
        if (is_meant && demand_.met.count(path) > 0)
          demand_.met[path].insert("prop=" + property.name);
      });
  }

  // The shape that a planned case chooses, with every option set.
  void add_chosen(Case c, const Demand::Pairs& usual) {
    for (const OptionSet& set : sets_) {
      c.options = set;
      for (const std::string& path : paths(c)) {
        if (usual.count(path) > 0) continue;
        for (const auto& [name, value] : set) demand_.met[path].insert(name + "=" + value);
        demand_.met[path];
      }
    }
  }

  void rule_out(const Demand::Pairs& usual) {
    std::set<std::string> all;
    for (const auto& [path, values] : demand_.met) all.insert(values.begin(), values.end());
    for (const auto& [path, values] : demand_.met)
      for (const std::string& value : all) {
        if (values.count(value) > 0) continue;
        const bool is_option = value.find('=') != std::string::npos &&
                               !value.starts_with("inputs=") && !value.starts_with("prop=");
        const char* rule = kOtherPath;
        if (value.starts_with("prop=")) rule = kOtherCalls;
        if (usual.count(path) == 0 && !is_option) rule = kOtherConstants;
        demand_.ruled_out[rule][path].insert(value);
      }
  }

  const std::vector<Case>& planned_;
  const Launches& launches_;
  const OpSpec& op_;
  const Pass& pass_;
  Case base_;
  std::set<OptionSet> sets_;
  std::vector<Shape> shapes_;
  Demand demand_;
};

}  // namespace

std::string path_of(const std::string& kernel) {
  static const std::regex kTypes(R"(Policy<[^<>]*>|\b(bf16|f16|float|double)\b)");
  static const std::regex kWidth(R"(\* ?(>?), [48]\b)");
  return std::regex_replace(std::regex_replace(kernel, kTypes, "*"), kWidth, "*$1, vectors");
}

std::vector<std::string> values_of(const Case& c) {
  std::vector<std::string> values = {"inputs=" + c.inputs};
  for (const auto& [name, value] : c.options) values.push_back(name + "=" + value);
  if (c.shift != 0) values.push_back("shift");
  if (c.skew != 0) values.push_back("skew");
  if (c.gap != 0) values.push_back("gap");
  if (!c.property.empty()) values.push_back("prop=" + c.property);
  return values;
}

Demand demand_of(const std::vector<Case>& planned, const Launches& launches) {
  return Reach(planned, launches)();
}

}  // namespace tigon
