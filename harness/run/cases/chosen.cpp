// SPDX-License-Identifier: Apache-2.0
// What a request chooses of the contracts.
#include "harness/run/cases/chosen.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/run/cases/known_names.h"
#include "harness/run/judging/properties.h"

namespace tigon {

namespace {

void add_name(std::vector<std::string>* names, const std::string& name) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

// Does the contract of a chosen op plan an axis with nothing in it, as that of no tokens?
bool may_be_zero(const CheckRequest& request, const std::string& axis) {
  for (const OpSpec* op : chosen_ops(request))
    for (const AxisPlan& plan : op->axes)
      if (plan.axis.symbol == axis && std::count(plan.check.begin(), plan.check.end(), 0) > 0)
        return true;
  return false;
}

void require_size(const CheckRequest& request, const std::string& axis, int64_t size) {
  if (size > 0) return;
  if (size < 0 || !may_be_zero(request, axis))
    throw UsageError(fmt::format("axis {}={}: {}", axis, size, kSizesAre));
}

bool is_over_ranks(const OpSpec& op) {
  return std::any_of(op.passes.begin(), op.passes.end(),
                     [](const Pass& pass) { return tigon::is_over_ranks(pass); });
}

void require_op_over_ranks(const CheckRequest& request) {
  if (request.ranks == 0 || !chosen_ops(request).empty()) return;
  std::string ops;
  for (const OpSpec& op : all_ops())
    if (is_over_ranks(op)) ops += " " + op.name;
  throw UsageError("--ranks: several ranks have a part of none of these ops, but of" + ops);
}

}  // namespace

bool is_over_ranks(const Pass& pass) {
  return std::any_of(pass.options.begin(), pass.options.end(),
                     [](const OptionInfo& o) { return o.name == kRanksOption; });
}

void require_possible(const CheckRequest& request) {
  std::vector<std::string> ops, passes, implementations, axes;
  for (const OpSpec& op : all_ops()) ops.push_back(op.name);
  require_known("op", request.ops, ops);
  require_op_over_ranks(request);
  for (const OpSpec* op : chosen_ops(request)) {
    for (const AxisPlan& a : op->axes) add_name(&axes, a.axis.symbol);
    for (const Pass& pass : op->passes) {
      add_name(&passes, pass.name);
      for (const Implementation& i : pass.implementations) add_name(&implementations, i.name);
    }
  }
  require_known("pass", request.passes, passes);
  require_known("implementation", request.implementations, implementations);
  require_known("property", request.properties, property_names());
  for (const auto& [axis, sizes] : request.axes) {
    require_known("axis", {axis}, axes);
    if (sizes.empty()) throw UsageError(fmt::format("axis {}: no values", axis));
    for (const int64_t size : sizes) require_size(request, axis, size);
  }
  for (const Case& c : request.cases)
    for (const auto& [axis, size] : c.axes) require_size(request, axis, size);
  if (request.shard_count < 1 || request.shard_index < 0 ||
      request.shard_index >= request.shard_count)
    throw UsageError(fmt::format("shard {}/{}: the index is 0 to count - 1", request.shard_index,
                                 request.shard_count));
  if (!(request.timeout_s >= 0)) throw UsageError("timeout: seconds, 0 or more");
}

std::vector<const OpSpec*> chosen_ops(const CheckRequest& request) {
  std::vector<const OpSpec*> ops;
  for (const OpSpec& op : all_ops())
    if (is_chosen(request.ops, op.name) && (request.ranks == 0 || is_over_ranks(op)))
      ops.push_back(&op);
  return ops;
}

std::vector<ChosenPass> chosen_passes(const CheckRequest& request) {
  std::vector<ChosenPass> passes;
  for (const OpSpec* op : chosen_ops(request))
    for (const Pass& pass : op->passes)
      if (is_chosen(request.passes, pass.name)) passes.push_back({op, &pass});
  return passes;
}

std::vector<const Implementation*> chosen_implementations(const Pass& pass,
                                                          const CheckRequest& request,
                                                          bool unnamed_libraries) {
  const bool libraries = unnamed_libraries || !request.implementations.empty();
  std::vector<const Implementation*> chosen;
  for (const Implementation& i : pass.implementations)
    if (is_selected(i, request.implementations) && (libraries || !is_library(i)))
      chosen.push_back(&i);
  return chosen;
}

std::vector<DType> chosen_dtypes(const std::vector<DType>& known, const CheckRequest& request) {
  std::vector<DType> dtypes;
  for (const DType dtype : known)
    if (is_chosen(request.dtypes, dtype)) dtypes.push_back(dtype);
  return dtypes;
}

const std::vector<int64_t>& sizes_of(const AxisPlan& axis, const CheckRequest& request,
                                     const std::vector<int64_t>& planned) {
  const auto given = request.axes.find(axis.axis.symbol);
  return given == request.axes.end() ? planned : given->second;
}

std::vector<Shape> product(const AxisValues& lists) {
  std::vector<Shape> shapes = {{}};
  for (const auto& [axis, values] : lists) {
    std::vector<Shape> longer;
    for (const Shape& shape : shapes)
      for (const int64_t value : values) {
        longer.push_back(shape);
        longer.back()[axis] = value;
      }
    shapes = std::move(longer);
  }
  return shapes;
}

Case plain_case(const ChosenPass& chosen, const std::string& implementation, DType dtype,
                const CheckRequest& request) {
  Case c;
  c.op = chosen.op->name;
  c.pass = chosen.pass->name;
  c.impl = implementation;
  c.dtype = dtype;
  c.inputs = chosen.op->inputs.front().name;
  c.seed = request.seed;
  return c;
}

}  // namespace tigon
