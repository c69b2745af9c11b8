// A small op for the fuzzed parsers to know: names, axes and options, nothing to run.
#pragma once
#include "harness/spec/op_spec.h"

namespace tigon {

inline OpSpec fuzz_op() {
  static constexpr Axis kT{"T", "tokens"}, kH{"H", "hidden size"};
  Pass pass;
  pass.name = "forward";
  pass.tensors = {{"x", Role::kIn, {kT, kH}, false, {{DType::kF32, DType::kF32}}},
                  {"w", Role::kIn, {kH}, true, {{DType::kF32, DType::kF32}}}};
  pass.options = {{"eps", {}, 1e-6}, {"casting", {"none", "gemma"}, 0}};
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

}  // namespace tigon
