// SPDX-License-Identifier: Apache-2.0
// A small op for the fuzzed parsers to know: names, axes, options and a property, nothing to run.
// For the one source of a program: it defines what the parsers look names up with.
#pragma once
#include "harness/run/judging/properties.h"
#include "harness/spec/op_spec.h"
#include "harness/spec/registry.h"

namespace tigon {

OpSpec fuzz_op() {
  static constexpr Axis kT{"T", "tokens"}, kH{"H", "hidden size"};
  Pass pass;
  pass.name = "forward";
  const std::map<DType, DType> f32 = {{DType::kF32, DType::kF32}};
  pass.tensors = {
      {.name = "x", .role = Role::kIn, .shape = {kT, kH}, .dtype = f32},
      {.name = "w", .role = Role::kIn, .shape = {kH}, .is_optional = true, .dtype = f32}};
  pass.options = {{"eps", {}, 1e-6}, {"casting", {"none", "gemma"}, 0}};
  pass.properties = {{.name = "rerun"}};
  pass.implementations = {{"fused", {DType::kF32}, {}, {}}};
  OpSpec op;
  op.name = "op";
  op.axes = {{kT, {1}, {}, {}, {}}, {kH, {8}, {}, {}, {}}};
  op.inputs = {{"normal", {}}};
  op.option_sets = {{}};
  op.policies = {DType::kF32};
  op.passes = {std::move(pass)};
  return op;
}

const std::vector<OpSpec>& all_ops() {
  static const std::vector<OpSpec> ops = {fuzz_op()};
  return ops;
}

std::vector<Property> properties_of(const Pass& pass) { return pass.properties; }

std::optional<Property> find_property(const Pass& pass, const std::string& name) {
  for (const Property& property : pass.properties)
    if (property.name == name) return property;
  return std::nullopt;
}

}  // namespace tigon
