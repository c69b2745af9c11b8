// SPDX-License-Identifier: Apache-2.0
// Contract of linear_cross_entropy.
#include "reference/linear_cross_entropy.h"

#include "harness/ops/implementations.h"
#include "harness/ops/linear_plan.h"
#include "harness/spec/bind.h"
#include "harness/spec/properties.h"

namespace tigon::linear_cross_entropy {

namespace {

std::vector<InputSet> inputs() {
  std::vector<InputSet> sets = loss_input_sets(V, {{"w", "normal", {{"scale", 0.25}}}});
  const InputSet normal = sets.front();
  add_linear_logits(&sets);
  sets.push_back(linear_offset(normal, "dloss"));
  // Terms of one sign of dx, with a z-loss: without it the target's term is as large as all others.
  sets.push_back(replaced(
      normal, "one_sided",
      {{"x", "normal", {{"scale", 0.1}}}, {"w", "normal", {{"mean", 1}, {"scale", 0.1}}}}));
  sets.push_back(linear_zero_weight(normal));
  add_linear_rows(&sets, {"dloss"});
  return sets;
}

template <class Args>
void underflow(const Args& a) {
  for (const auto* out : {&a.loss, &a.lse, &a.z_part, &a.accuracy, &a.entropy})
    if (*out) reference::array(*out).setOnes();
  linear_underflow(a);
}

// Each form of the loss in columns, and rows that are gathered for chunks that are summed. The
// forms in rows are kernels of cross_entropy, whose plan has them.
std::vector<OptionSet> forms() {
  std::vector<OptionSet> forms = {together(kByColumns, kWithBias)};
  for (const OptionSet& form : loss_forms()) forms.push_back(together(kByColumns, form));
  forms.push_back(together(kValidRows, kWithBias));
  return forms;
}

std::vector<OptionSet> option_sets() {
  std::vector<OptionSet> sets = loss_option_sets();
  // Chunks of one row; of a few rows, the last one shorter.
  sets.push_back({{"logits_bytes", "200"}});
  sets.push_back({{"logits_bytes", "2600"},
                  {"label_smoothing", "0.1"},
                  {"z_loss", "0.01"},
                  {"softcap", "10"},
                  {"reduction", "none"}});
  sets.push_back(
      with_results({{"logits_bytes", "2600"}, {"class_weight", "given"}, {"reduction", "none"}}));
  sets.push_back(
      with_results({{"class_weight", "given"}, {"z_loss", "0.01"}, {"normaliser", "given"}}));
  sets.push_back(kByColumns);
  // No memory of dw that holds logits: many chunks in the scratch, or the first of fewer columns.
  const OptionSet to_accum = {
      {"dw", "absent"}, {"dw_accum", "given"}, {"bias", "given"}, {"dbias", "given"}};
  sets.push_back(together(kByColumns, together(to_accum, kFp32Dx)));
  sets.push_back(together(kByWideColumns, to_accum));
  sets.push_back(
      together(kByColumns, {{"label_smoothing", "0.1"}, {"z_loss", "0.01"}, {"softcap", "10"}}));
  sets.push_back(together(
      with_results({{"class_weight", "given"}, {"label_smoothing", "0.1"}, {"reduction", "none"}}),
      kByWideColumns));
  // More than there are; fewer than some shapes have, which must be told whatever is ignored.
  sets.push_back(kValidRows);
  sets.push_back(together(
      kFp32Dx,
      with_results({{"max_valid_rows", "3"}, {"ignore_index", "-1"}, {"reduction", "none"}})));
  sets.push_back({{"dx", "absent"}});
  sets.push_back({{"dw", "absent"}});
  sets.push_back(
      with_results({{"dw", "absent"}, {"logits_bytes", "2600"}, {"max_valid_rows", "3"}}));
  sets.push_back(kWithBias);
  sets.push_back(together(kFp32Dx, together(kWithBias, together(kInChunks, {{"softcap", "5"}}))));
  sets.push_back(together(kWithBias, {{"dx", "absent"}, {"dw", "absent"}}));
  for (const char* to : {"dw_fp32", "dw_accum"}) {
    sets.push_back(together(kWithBias, {{"dw", "absent"}, {to, "given"}}));
    sets.push_back({{"dw", "absent"}, {to, "given"}, {"logits_bytes", "2600"}});
  }
  return sets;
}

// The memory of dw holds logits; without it there are many chunks of eight columns.
const std::vector<OptionSet> kCut = {{}, {{"z_loss", "10"}}};
const std::vector<OptionSet> kCutGradient = {
    {}, {{"z_loss", "10"}}, {{"z_loss", "10"}, {"dw", "absent"}}};

const OptionSet kEverything =
    with_results({{"class_weight", "given"}, {"label_smoothing", "0.1"}, {"reduction", "none"}});

// `cut`: with what the vocabulary is cut.
std::vector<Property> row_properties(std::vector<std::string> sums_of_rows,
                                     std::vector<OptionSet> cut) {
  return joined(
      {linear_row_properties({{{"reduction", "sum"}}, {{"reduction", "none"}}}, kEverything,
                             std::move(sums_of_rows)),
       {logits_in_scratch(1), chunk_size(),
        on_inputs("one_sided", with_options(std::move(cut), columns())), row_gaps(false)}});
}

std::map<std::string, OutputBudget> result_budgets() {
  std::map<std::string, OutputBudget> budget = {{"lse", of_row()}};
  for (const char* result : {"loss", "z_part", "accuracy", "entropy"})
    budget[result] = of_all_rows();
  return budget;
}

Pass forward_pass() {
  Pass pass = linear_logits_pass();
  pass.oracle = oracle<Forward>([](auto& a) { reference::linear_cross_entropy::forward(a); });
  pass.scale = oracle<Forward>([](auto& a) { reference::linear_cross_entropy::forward_scale(a); });
  pass.intermediate =
      oracle<Forward>([](auto& a) { reference::linear_cross_entropy::forward_intermediate(a); });
  pass.implementations = {fused<Forward>(), naive_loss(naive_chain<Forward>())};
  pass.budget = result_budgets();
  pass.refused = refused_smoothing();
  pass.edges = full_smoothing();
  pass.properties = joined({row_properties({}, kCut), loss_properties()});
  return pass;
}

Pass forward_backward_pass() {
  Pass pass = linear_gradient_pass();
  pass.oracle = oracle<ForwardBackward>(
      [](auto& a) { reference::linear_cross_entropy::forward_backward(a); });
  pass.scale = oracle<ForwardBackward>(
      [](auto& a) { reference::linear_cross_entropy::forward_backward_scale(a); });
  pass.intermediate = oracle<ForwardBackward>(
      [](auto& a) { reference::linear_cross_entropy::forward_backward_intermediate(a); });
  pass.underflow = oracle<ForwardBackward>([](auto& a) { underflow(a); });
  pass.implementations = {fused<ForwardBackward>(), naive_loss(naive_chain<ForwardBackward>())};
  pass.budget.merge(result_budgets());
  for (const char* of_rows : {"dx", "dx_fp32"})
    pass.budget[of_rows].reduction = pass.budget[of_rows].reduction + weight_terms(T, V);
  pass.upstream = "dloss";
  pass.refused = joined({refused_smoothing(), refused_gradients()});
  pass.edges = full_smoothing();
  pass.properties = joined(
      {row_properties({"dw"}, kCutGradient),
       loss_properties(),
       loss_gradient_properties(),
       {for_policies({DType::kF32, DType::kBF16}, gradient_scaling("dloss", {"dx", "dw"}))}});
  return pass;
}

}  // namespace

OpSpec contract() {
  OpSpec op = linear_op("linear_cross_entropy", kFormula);
  op.axes.front().most = kAnySize;  // chunks of rows are counted, and never all
  op.inputs = inputs();
  op.option_sets = option_sets();
  op.further_options = forms();
  op.huge_options["reduction"] = "none";
  op.passes = {pass<Forward>("forward", forward_pass()),
               pass<ForwardBackward>("forward_backward", forward_backward_pass())};
  return op;
}

}  // namespace tigon::linear_cross_entropy
