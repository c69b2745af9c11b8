// SPDX-License-Identifier: Apache-2.0
// Carries out properties.
#include "harness/run/judging/properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/run/judging/case_experiment.h"
#include "harness/run/memory/stop.h"
#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"

namespace tigon {
namespace {

bool has_far_rows(const Pass& pass) {
  return std::any_of(pass.tensors.begin(), pass.tensors.end(),
                     [&](const TensorInfo& info) { return is_of_far_rows(pass, info); });
}

}  // namespace

std::vector<Property> properties_of(const Pass& pass) {
  std::vector<Property> all = pass.properties;
  std::vector<Property> common = common_properties();
  if (has_alias(pass)) common.push_back(in_place());
  for (Property& p : launcher_properties())
    if (!p.needs_far_memory || has_far_rows(pass)) common.push_back(std::move(p));
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
