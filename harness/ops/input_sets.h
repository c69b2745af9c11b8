// SPDX-License-Identifier: Apache-2.0
// Input sets that contracts share: variants of a default set, and the special rows that every op
// must survive.
#pragma once
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "harness/spec/op_spec.h"

namespace tigon {

// The default set with other plans for some tensors.
inline InputSet replaced(InputSet set, const char* name, const std::vector<InputPlan>& plans) {
  set.name = name;
  set.plans.insert(set.plans.begin(), plans.begin(), plans.end());  // the first plan counts
  return set;
}

// The same distribution for several tensors.
inline std::vector<InputPlan> plans_of(const std::vector<std::string>& tensors,
                                       const char* distribution,
                                       const std::map<std::string, double>& parameters = {}) {
  std::vector<InputPlan> plans;
  for (const std::string& tensor : tensors) plans.push_back({tensor, distribution, parameters});
  return plans;
}

// Adds sets in which every second row of these tensors is special but finite.
inline void add_special_rows(std::vector<InputSet>* sets, const std::vector<std::string>& tensors) {
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

// Adds sets of logits where a maximum or a sum shows what it starts with: all far below 0, nearly
// equal, and one that is finite and far above the others in each row.
inline void add_logits(std::vector<InputSet>* sets, const char* tensor) {
  const InputSet normal = sets->front();
  const auto add = [&](const char* name, const char* distribution,
                       std::map<std::string, double> parameters) {
    sets->push_back(replaced(normal, name, {{tensor, distribution, std::move(parameters)}}));
  };
  add("far_below", "normal", {{"mean", -200}, {"scale", 4}});
  add("nearly_equal", "normal", {{"mean", -3}, {"scale", 1e-3}});
  add("one_outlier", "one_element", {{"value", 200}, {"every", 1}});
}

// Adds sets with a NaN, an infinity of either sign, and the largest finite values; `largest` where
// an op's own sums of larger ones overflow in fp32.
inline void add_nonfinite(std::vector<InputSet>* sets, const std::vector<std::string>& tensors,
                          double largest = std::numeric_limits<double>::infinity()) {
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

// Adds sets with an upstream gradient of 0 in every second row, and with one that is negative
// everywhere.
inline void add_upstream(std::vector<InputSet>* sets, const std::vector<std::string>& tensors) {
  const InputSet normal = sets->front();
  sets->push_back(replaced(normal, "zero_gradient", plans_of(tensors, "rows_of")));
  sets->push_back(replaced(normal, "negative_gradient",
                           plans_of(tensors, "normal", {{"mean", -2}, {"scale", 0.25}})));
}

}  // namespace tigon
