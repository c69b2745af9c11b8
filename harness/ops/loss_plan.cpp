// SPDX-License-Identifier: Apache-2.0
#include "harness/ops/loss_plan.h"

#include <fmt/format.h>

#include "harness/ops/row_sums.h"
#include "harness/spec/bind.h"
#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"
#include "reference/naive/eager.h"

namespace tigon {

std::vector<AxisPlan> logit_axes(const Axis& tokens, const Axis& vocabulary) {
  return {{.axis = tokens,
           .tiny = {1, 3},
           .check = {0, 1, 2, 33, 130},
           .sweep = {1024, 4096, 8192},
           .host_sweep = {8, 32},
           .huge = {16800},
           .refused = {-1},
           .most = INT32_MAX},
          {.axis = vocabulary,
           .tiny = {1, 7, 33},
           // In an order in which wide rows meet few of them (plan.cpp, each_value).
           .check = {128256, 32001, 7, 2, 9, 4099, 1, 8},
           .sweep = {32000, 50304, 128256, 151936, 262144},
           .host_sweep = {1024, 4096, 16384},
           .huge = {128256},
           .model_size = ModelSize::kVocabulary,
           .most = INT32_MAX}};
}

OptionSet with_results(OptionSet options) {
  for (const char* result : {"z_part", "accuracy", "entropy"}) options[result] = "given";
  return options;
}

std::vector<OptionSet> loss_option_sets() {
  return {{},
          {{"label_smoothing", "0.1"}},
          {{"softcap", "5"}},
          {{"ignore_index", "0"}, {"z_loss", "0.01"}, {"reduction", "sum"}},  // a class that occurs
          {{"reduction", "none"}},
          {{"dloss", "absent"}},
          {{"reduction", "none"}, {"dloss", "absent"}},
          // Each of the further results alone, without class weights.
          {{"z_loss", "0.01"}, {"z_part", "given"}},
          {{"accuracy", "given"}},
          {{"entropy", "given"}, {"label_smoothing", "0.1"}},
          {{"label_smoothing", "0.2"},
           {"z_loss", "0.001"},
           {"softcap", "30"},
           {"ignore_index", "0"},
           {"normaliser", "given"}},
          with_results({{"class_weight", "given"}, {"z_loss", "0.01"}}),
          with_results({{"class_weight", "given"},
                        {"label_smoothing", "0.1"},
                        {"z_loss", "0.01"},
                        {"softcap", "10"},
                        {"reduction", "none"},
                        {"ignore_index", "0"}})};
}

std::vector<OptionSet> loss_forms() {
  return {{{"softcap", "5"}}, with_results({{"class_weight", "given"}, {"z_loss", "0.01"}})};
}

std::vector<InputSet> target_input_sets(const Axis& classes,
                                        const std::vector<InputPlan>& defaults) {
  const auto with_targets = [&](const char* name, std::map<std::string, double> parameters) {
    InputSet set{name, defaults};
    set.plans.push_back({"target", "targets", std::move(parameters), classes});
    return set;
  };
  return {with_targets("normal", {}), with_targets("some_ignored", {{"ignored", 0.25}}),
          with_targets("all_ignored", {{"ignored", 1}}),
          with_targets("invalid_targets", {{"invalid", 0.3}})};
}

std::vector<InputSet> log_prob_input_sets(const Axis& classes, std::vector<InputPlan> defaults) {
  defaults.push_back({"dlogp", "normal", {{"mean", 1.5}, {"scale", 0.5}}});
  defaults.push_back({"dentropy", "normal", {{"mean", -0.8}, {"scale", 0.25}}});
  return target_input_sets(classes, defaults);
}

OptionSet with_entropy(OptionSet options) {
  options["entropy"] = options["dentropy"] = "given";
  return options;
}

std::vector<InputSet> loss_input_sets(const Axis& classes, std::vector<InputPlan> defaults) {
  defaults.push_back({"dloss", "normal", {{"mean", 1.5}, {"scale", 0.5}}});
  defaults.push_back({"class_weight", "normal", {{"mean", 1.5}, {"scale", 0.2}}});
  defaults.push_back({"normaliser", "normal", {{"mean", 7}, {"scale", 0.5}}});
  return target_input_sets(classes, defaults);
}

// With a softcap the logits are rounded three times before
// the exponential, which is then off by them times the logit, and the library's tanh adds its own.
Implementation naive_loss(Implementation chain) {
  const auto with_softcap = [](double then, double otherwise) {
    return Expr(fmt::format("(softcap>0 ? {:g} : {:g})", then, otherwise),
                [=](const Binding& b) { return b.at("softcap") > 0 ? then : otherwise; });
  };
  return rounding(with_softcap(40, 4), std::move(chain), with_softcap(naive::tanh_error(), 0));
}

Expr weight_terms(Axis rows, Axis classes) {
  return {"(class_weight ? T+V : 0)", [=](const Binding& b) {
            return b.at("class_weight") != 0 ? b.at(rows.symbol) + b.at(classes.symbol) : 0.0;
          }};
}

std::vector<OptionSet> refused_temperatures() {
  std::vector<OptionSet> sets;
  for (const char* value : {"0", "-1", "inf", "nan", "1e-39"})
    sets.push_back({{"temperature", value}});
  return sets;
}

std::vector<OptionSet> refused_divergences() {
  std::vector<OptionSet> sets = refused_temperatures();
  for (const char* beta : {"-0.01", "1.01", "nan"}) sets.push_back({{"beta", beta}});
  return sets;
}

std::vector<OptionSet> full_smoothing() {
  return {{{"label_smoothing", "1"}}, {{"class_weight", "given"}, {"label_smoothing", "1"}}};
}

std::vector<OptionSet> refused_smoothing() {
  return {
      {{"label_smoothing", "1.01"}}, {{"label_smoothing", "-0.01"}}, {{"label_smoothing", "nan"}}};
}

Property of_one_shape(Property property) {
  property.one_shape = true;
  return property;
}

// Of one row, too, where the weights of all valid rows are 1 together.
Property neutral_class_weight() {
  const auto property = [](const Axes& axes) {
    return same_results(
        "neutral_class_weight", {.axes = axes},
        {.options = {{"class_weight", "given"}}, .fill = {{"class_weight", 1}}, .axes = axes},
        {});  // another way to the same numbers
  };
  Property all = property({}), of_one_row = property({{"T", 1}});
  all.statement += ", and so of one row";
  all.check = [each = all.check, one = of_one_row.check](Experiment& e) {
    each(e);
    one(e);
  };
  return all;
}

std::vector<Property> loss_properties() {
  const std::vector<std::string> none = {};  // another way to the same numbers
  return {permutation("V", "target"),
          dtype_twin(),
          of_one_shape(neutral_class_weight()),
          of_one_shape(
              same_results("normaliser_of_one", {.options = {{"reduction", "sum"}}},
                           {.options = {{"normaliser", "given"}}, .fill = {{"normaliser", 1}}})),
          same_results("neutral_ignore_index", {}, {.options = {{"ignore_index", "-1"}}}),
          same_results("neutral_softcap", {}, {.options = {{"softcap", "1000000"}}}, none),
          same_results("neutral_smoothing", {}, {.options = {{"label_smoothing", "1e-30"}}}, none),
          same_results("neutral_z_loss", {}, {.options = {{"z_loss", "1e-30"}}}, none)};
}

Property judged(std::string name, std::string statement, const char* inputs,
                std::vector<OptionSet> options) {
  const auto check = [](Experiment& e) { e.judge(e.base(), e.base_outputs()); };
  return of_one_shape(on_inputs(
      inputs, with_options(std::move(options), {std::move(name), std::move(statement), check})));
}

Property first_of_equals() {
  return judged("first_of_equals", "of equal logits the first counts", "equal_rows",
                {{{"accuracy", "given"}, {"reduction", "none"}}});
}

std::vector<Property> loss_gradient_properties() {
  return {
      same_results("neutral_dloss", {.options = {{"dloss", "absent"}}}, {.fill = {{"dloss", 1}}}),
      same_results("neutral_reduction", {.options = {{"reduction", "sum"}}, .fill = {{"dloss", 1}}},
                   {.options = {{"reduction", "none"}}, .fill = {{"dloss", 1}}})};
}

namespace {

template <class T>
std::vector<T> one_after_another(std::vector<std::vector<T>> parts) {
  std::vector<T> all;
  for (auto& part : parts)
    for (T& item : part) all.push_back(std::move(item));
  return all;
}

}  // namespace

std::vector<Property> joined(std::vector<std::vector<Property>> parts) {
  return one_after_another(std::move(parts));
}
std::vector<OptionSet> joined(std::vector<std::vector<OptionSet>> parts) {
  return one_after_another(std::move(parts));
}

}  // namespace tigon
