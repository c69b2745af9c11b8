// SPDX-License-Identifier: Apache-2.0
// Contract of linear_divergence.
#include "reference/linear_divergence.h"

#include "harness/ops/implementations.h"
#include "harness/ops/linear_plan.h"
#include "harness/ops/row_sums.h"
#include "harness/spec/bind.h"
#include "harness/spec/properties.h"

namespace tigon::linear_divergence {

namespace {

const OptionSet kTeacherBias = {{"teacher_bias", "given"}};
// Of forward, and of backward.
const OptionSet kBiases = together(kTeacherBias, {{"bias", "given"}});
const OptionSet kAllBiases = together(kTeacherBias, kWithBias);

// Of student and teacher alike, and of one of them.
std::vector<InputSet> inputs() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<InputSet> sets =
      target_input_sets(V, {{"w", "normal", {{"scale", 0.25}}},
                            {"teacher_w", "normal", {{"mean", 0.1}, {"scale", 0.25}}},
                            {"dloss", "normal", {{"mean", 1.5}, {"scale", 0.5}}}});
  std::erase_if(sets, [](const InputSet& set) { return set.name == "invalid_targets"; });
  const InputSet normal = sets.front();
  add_linear_logits(&sets);
  const auto add = [&](const char* name, const std::vector<InputPlan>& plans) {
    sets.push_back(replaced(normal, name, plans));
    return &sets.back();
  };
  add("teacher_confident", {{"teacher_w", "normal"}});
  add("teacher_certain", {{"teacher_x", "first_column", {{"value", 4}}},
                          {"teacher_w", "last_row", {{"value", 3}, {"scale", 0.25}}}});
  // Of which a temperature of 0.01 makes ordinary ones.
  add("small_logits",
      {{"w", "normal", {{"scale", 0.0025}}}, {"teacher_w", "normal", {{"scale", 0.0025}}}});
  add("student_masked", {{"bias", "one_element", {{"value", -kInfinity}}}})->nonfinite = true;
  add("teacher_masked", {{"teacher_bias", "one_element", {{"value", -kInfinity}}}})->nonfinite =
      true;
  sets.push_back(linear_offset(normal, "dloss"));
  sets.push_back(linear_zero_weight(normal));
  add_linear_rows(&sets, {"dloss"});
  return sets;
}

std::vector<OptionSet> option_sets() {
  std::vector<OptionSet> sets = {
      {},
      kReverse,
      kMixed,
      together(kMixed, {{"beta", "0.1"}, {"temperature", "0.8"}}),
      together(kReverse, {{"temperature", "100"}}),
      together(kMixed, {{"ignore_index", "0"}}),  // a class that occurs
      // Chunks of a few rows, the last one shorter; chunks of one row.
      kInChunks,
      {{"logits_bytes", "200"}},
      together(kMixed, kInChunks),
      kByColumns,
      together(kMixed, together(kByColumns, {{"temperature", "0.8"}})),
      together(kReverse, together(kByWideColumns, kAllBiases)),
      // More than there are; fewer than some shapes have, which must be told.
      kValidRows,
      together(kMixed, {{"max_valid_rows", "3"}, {"ignore_index", "-2"}}),
      {{"dx", "absent"}},
      {{"dw", "absent"}},
      together(kInChunks, {{"dw", "absent"}}),
      kAllBiases,
      together(kMixed, together(kAllBiases, kInChunks)),
      together(kWithBias, {{"dx", "absent"}, {"dw", "absent"}})};
  for (const OptionSet& cut : {OptionSet{}, kByColumns, kValidRows})
    sets.push_back(together(kFp32Dx, cut));
  for (const char* to : {"dw_fp32", "dw_accum"}) {
    const OptionSet there = {{"dw", "absent"}, {to, "given"}};
    sets.push_back(together(there, kWithBias));
    sets.push_back(together(there, kInChunks));
    sets.push_back(together(there, kByColumns));
  }
  return sets;
}

// What meets every input set, beside the defaults.
std::vector<OptionSet> forms() {
  return {together(kMixed, kAllBiases), together(kReverse, together(kByColumns, kAllBiases)),
          together(kValidRows, kAllBiases)};
}

// Near the oracle where an option meets an input set that it could break on.
std::vector<Property> judged_together(const OptionSet& biases) {
  const auto on = [&](const char* inputs, std::vector<OptionSet> options) {
    return judged(std::string("options_on_") + inputs, "near the oracle", inputs,
                  std::move(options));
  };
  const OptionSet cold = {{"temperature", "0.01"}}, cold_mixed = together(kMixed, cold);
  const OptionSet masked = together(kMixed, biases);
  return {on("some_ignored", {kInChunks, together(kMixed, kInChunks)}),
          on("small_logits", {cold, together(cold_mixed, kByColumns), together(cold, kReverse)}),
          on("student_masked", {masked, together(masked, kByColumns), together(kReverse, biases)}),
          on("teacher_masked", {biases, masked, together(masked, kByColumns)})};
}

std::vector<Property> row_properties(const OptionSet& biases,
                                     std::vector<std::string> sums_of_rows) {
  const OptionSet everything = together(kMixed, biases);
  return joined(
      {linear_row_properties({{}, everything}, everything, std::move(sums_of_rows)),
       {logits_in_scratch(2), with_options(kKinds, chunk_size()), with_options(kKinds, columns()),
        row_gaps(false), dtype_twin(),
        of_one_shape(
            same_results("jsd_from_one_end", {}, {.options = together(kMixed, {{"beta", "0"}})})),
        of_one_shape(same_results("jsd_from_the_other", {.options = kReverse},
                                  {.options = together(kMixed, {{"beta", "1"}})})),
        same_results("neutral_ignore_index", {}, {.options = {{"ignore_index", "-1"}}})}});
}

// The sums on the way are those of both layers.
OutputBudget of_both_rows() {
  OutputBudget budget = of_row();
  budget.reduction = budget.reduction + G;
  return budget;
}

// What the teacher's layer adds to a pass.
Pass with_teacher(Pass pass) {
  pass.flops = pass.flops + 2 * Expr(T) * G * V;
  pass.bytes = *pass.bytes + *linear_logits_pass().bytes;
  pass.products.push_back({.m = T, .n = V, .k = G, .transpose_b = true});
  pass.zero_columns.push_back({"G", "teacher_x"});
  for (const char* matrix : {"teacher_x", "teacher_w"}) pass.rows_apart.push_back(matrix);
  for (auto& [output, budget] : pass.budget) budget.reduction = budget.reduction + G;
  return pass;
}

Pass forward_pass() {
  Pass pass = with_teacher(linear_logits_pass());
  pass.oracle = oracle<Forward>([](auto& a) { reference::linear_divergence::forward(a); });
  pass.scale = oracle<Forward>([](auto& a) { reference::linear_divergence::forward_scale(a); });
  pass.intermediate =
      oracle<Forward>([](auto& a) { reference::linear_divergence::forward_intermediate(a); });
  pass.implementations = {fused<Forward>(), naive_chain<Forward>()};
  for (const char* result : {"loss", "lse", "teacher_lse", "slope"})
    pass.budget[result] = of_both_rows();
  pass.refused = refused_divergences();
  pass.properties = joined({row_properties(kBiases, {}), judged_together(kBiases)});
  return pass;
}

Pass backward_pass() {
  Pass pass = with_teacher(linear_gradient_pass());
  pass.oracle = oracle<Backward>([](auto& a) { reference::linear_divergence::backward(a); });
  pass.scale = oracle<Backward>([](auto& a) { reference::linear_divergence::backward_scale(a); });
  pass.intermediate =
      oracle<Backward>([](auto& a) { reference::linear_divergence::backward_intermediate(a); });
  pass.underflow = oracle<Backward>([](auto& a) { linear_underflow(a); });
  pass.implementations = {fused<Backward>(), naive_chain<Backward>()};
  pass.least_flops = 4 * Expr(T) * H * V;  // with logits that forward kept
  pass.inputs_from = "forward";
  pass.upstream = "dloss";
  pass.refused = joined({refused_divergences(), refused_gradients()});
  pass.properties =
      joined({row_properties(kAllBiases, {"dw"}),
              judged_together(kAllBiases),
              {for_policies({DType::kF32, DType::kBF16},
                            with_options(kKinds, gradient_scaling("dloss", {"dx", "dw"})))}});
  return pass;
}

AxisPlan teacher_axis() {
  return {.axis = G,
          .tiny = {16},
          .check = {1, 24, 96},
          .sweep = {4096},
          .host_sweep = {64},
          .huge = {64},
          .model_size = ModelSize::kHidden,
          .most = INT32_MAX};
}

}  // namespace

OpSpec contract() {
  OpSpec op = linear_op("linear_divergence", kFormula);
  op.axes.insert(op.axes.begin() + 2, teacher_axis());
  for (auto& shape : op.further_shapes_of_one_type) shape["G"] = 16;
  for (auto& [shape, inputs] : op.further_inputs) shape["G"] = 16;
  op.inputs = inputs();
  op.option_sets = option_sets();
  op.further_options = forms();
  op.passes = {pass<Forward>("forward", forward_pass()),
               pass<Backward>("backward", backward_pass())};
  return op;
}

}  // namespace tigon::linear_divergence
