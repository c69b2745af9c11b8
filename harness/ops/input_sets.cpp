// SPDX-License-Identifier: Apache-2.0
#include "harness/ops/input_sets.h"

#include <utility>

namespace tigon {

InputSet replaced(InputSet set, const char* name, const std::vector<InputPlan>& plans) {
  set.name = name;
  set.plans.insert(set.plans.begin(), plans.begin(), plans.end());  // the first plan counts
  return set;
}

std::vector<InputPlan> plans_of(const std::vector<std::string>& tensors, const char* distribution,
                                const std::map<std::string, double>& parameters) {
  std::vector<InputPlan> plans;
  for (const std::string& tensor : tensors) plans.push_back({tensor, distribution, parameters});
  return plans;
}

void add_special_rows(std::vector<InputSet>* sets, const std::vector<std::string>& tensors) {
  const InputSet normal = sets->front();
  const auto add = [&](const char* name, const char* distribution,
                       const std::map<std::string, double>& parameters = {}) {
    sets->push_back(replaced(normal, name, plans_of(tensors, distribution, parameters)));
  };
  add("equal_rows", "equal_rows");
  add("one_hot", "one_hot", {{"value", 3}});
  add("negative_zero", "rows_of", {{"value", -0.0}});
  add("denormal_rows", "denormal_rows");
}

void add_logits(std::vector<InputSet>* sets, const char* tensor) {
  const InputSet normal = sets->front();
  const auto add = [&](const char* name, const char* distribution,
                       std::map<std::string, double> parameters) {
    sets->push_back(replaced(normal, name, {{tensor, distribution, std::move(parameters)}}));
  };
  add("far_below", "normal", {{"mean", -200}, {"scale", 4}});
  add("nearly_equal", "normal", {{"mean", -3}, {"scale", 1e-3}});
  add("one_outlier", "one_element", {{"value", 200}, {"every", 1}});
}

void add_nonfinite(std::vector<InputSet>* sets, const std::vector<std::string>& tensors,
                   double largest) {
  const InputSet normal = sets->front();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto add = [&](const char* name, const char* distribution,
                       const std::map<std::string, double>& parameters = {}) {
    sets->push_back(replaced(normal, name, plans_of(tensors, distribution, parameters)));
    sets->back().nonfinite = true;
  };
  add("one_nan", "one_element", {{"value", std::numeric_limits<double>::quiet_NaN()}});
  add("one_inf", "one_element", {{"value", kInfinity}});
  add("one_negative_inf", "one_element", {{"value", -kInfinity}});
  add("largest_rows", "largest_rows", {{"limit", largest}});
}

void add_upstream(std::vector<InputSet>* sets, const std::vector<std::string>& tensors) {
  const InputSet normal = sets->front();
  sets->push_back(replaced(normal, "zero_gradient", plans_of(tensors, "rows_of")));
  sets->push_back(replaced(normal, "negative_gradient",
                           plans_of(tensors, "normal", {{"mean", -2}, {"scale", 0.25}})));
}

}  // namespace tigon
