// SPDX-License-Identifier: Apache-2.0
// Contract of linear_policy.
#include "reference/linear_policy_scale.h"

#include "harness/ops/implementations.h"
#include "harness/ops/linear_plan.h"
#include "harness/spec/bind.h"
#include "harness/spec/properties.h"

namespace tigon::linear_policy {

namespace {

// Log-probabilities are about -log V: ratios of all sizes among the shapes.
std::vector<InputSet> inputs() {
  std::vector<InputSet> sets =
      target_input_sets(V, {{"w", "normal", {{"scale", 0.25}}},
                            {"old_logp", "normal", {{"mean", -3}}},
                            {"ref_logp", "normal", {{"mean", -3}}},
                            {"sampling_logp", "normal", {{"mean", -3}}},
                            {"weight", "normal", {{"mean", 1.5}, {"scale", 0.5}}},
                            {"normaliser", "normal", {{"mean", 7}, {"scale", 0.5}}},
                            {"dloss", "normal", {{"mean", 1.5}, {"scale", 0.5}}}});
  const InputSet normal = sets.front();
  add_linear_logits(&sets);
  sets.push_back(linear_offset(normal, "dloss"));
  add_linear_rows(&sets, {"dloss"});
  // k3 grows like 1 / p where the policy would hardly draw what the reference did.
  for (InputSet& set : sets)
    if (set.name != "normal")
      set.plans.insert(set.plans.begin(), {"ref_logp", "normal", {{"mean", -1000}}});
  return sets;
}

// All that is returned, beside other options.
OptionSet with_metrics(OptionSet options) {
  for (const char* result : {"clipped", "entropy", "logp"}) options[result] = "given";
  return options;
}
// The same with the divergence from a reference.
OptionSet with_all(OptionSet options) {
  for (const char* given : {"ref_logp", "kl"}) options[given] = "given";
  options.insert({"kl_weight", "0.1"});
  return with_metrics(std::move(options));
}

const OptionSet kNone = {{"reduction", "none"}};

std::vector<OptionSet> option_sets() {
  return {
      {},
      {{"temperature", "0.8"}, {"ignore_index", "0"}},  // a class that occurs
      {{"reduction", "none"}, {"dloss", "absent"}},
      {{"old_logp", "absent"}},
      {{"clip_low", "0.5"}, {"clip_high", "0.3"}, {"delta", "1.5"}},
      {{"objective", "cispo"}, {"clip_high", "2"}},
      {{"objective", "sapo"}},
      {{"objective", "sapo"}, {"sapo_positive", "0.7"}, {"sapo_negative", "2"}},
      {{"ref_logp", "given"}, {"kl", "given"}},  // of which nobody takes the gradient
      with_all({{"weight", "given"}, {"reduction", "sum"}}),
      with_all({{"weight", "given"}, {"normaliser", "given"}, {"old_logp", "absent"}}),
      // Chunks of a few rows, the last one shorter; of columns.
      with_all(
          together(kInChunks,
                   {{"reduction", "none"}, {"sampling_logp", "given"}, {"importance_cap", "0.7"}})),
      with_all(together(kByColumns, {{"reduction", "none"}, {"weight", "given"}})),
      with_all(together(kByWideColumns, {{"temperature", "0.8"}, {"weight", "given"}})),
      // More than there are; fewer than some shapes have, which must be told.
      with_all(together(kValidRows, {{"weight", "given"}, {"sampling_logp", "given"}})),
      with_all({{"max_valid_rows", "3"}, {"reduction", "none"}, {"weight", "given"}}),
      with_all({{"max_valid_rows", "3"}}),
      kWithBias,
      together(kWithBias, kInChunks),
      together(kWithBias, kByColumns),
      together(kWithBias, {{"dw", "absent"}, {"dw_fp32", "given"}}),
      kFp32Dx,
      together(kFp32Dx, kByColumns),
      together(kFp32Dx, kValidRows),
      together(kInChunks, {{"dx", "absent"}, {"dw", "absent"}, {"dw_accum", "given"}}),
  };
}

// What meets every input set, beside the defaults.
std::vector<OptionSet> forms() {
  const OptionSet weighed = {
      {"reduction", "none"}, {"weight", "given"}, {"sampling_logp", "given"}};
  return {with_all(together(kByColumns, kWithBias)),
          with_all(together(kValidRows, together(weighed, kWithBias)))};
}

// `everything`: all that the pass has.
std::vector<Property> row_properties(const OptionSet& everything,
                                     std::vector<std::string> sums_of_rows) {
  return joined(
      {linear_row_properties({kNone}, everything, std::move(sums_of_rows)),
       {logits_in_scratch(1), chunk_size(), columns(), row_gaps(false), permutation("V", "target"),
        dtype_twin(),
        of_one_shape(same_results("neutral_sampling", {.options = {}, .fill = {{"old_logp", -3}}},
                                  {.options = {{"sampling_logp", "given"}},
                                   .fill = {{"old_logp", -3}, {"sampling_logp", -3}}})),
        of_one_shape(
            same_results("normaliser_of_one", {.options = {{"reduction", "sum"}}},
                         {.options = {{"normaliser", "given"}}, .fill = {{"normaliser", 1}}}))}});
}

std::map<std::string, OutputBudget> result_budgets() {
  std::map<std::string, OutputBudget> budget = {{"logp", of_row()}};
  for (const char* result : {"loss", "kl", "clipped", "entropy"}) budget[result] = of_all_rows();
  return budget;
}

void underflow(const auto& a) {
  for (const auto* out : {&a.loss, &a.kl, &a.clipped, &a.entropy, &a.logp})
    if (*out) reference::array(*out).setOnes();
  linear_underflow(a);
}

std::vector<OptionSet> refused_options() {
  std::vector<OptionSet> sets = refused_temperatures();
  for (const char* bound : {"clip_low", "clip_high", "delta"})
    for (const char* value : {"-0.01", "nan"}) sets.push_back({{bound, value}});
  for (const char* above_0 : {"sapo_positive", "sapo_negative"})
    for (const char* value : {"0", "inf", "nan"}) sets.push_back({{above_0, value}});
  for (const char* value : {"0", "nan"}) sets.push_back({{"importance_cap", value}});
  for (const char* value : {"inf", "nan"})
    sets.push_back({{"ref_logp", "given"}, {"kl_weight", value}});
  sets.push_back({{"kl_weight", "0.01"}});  // of what?
  sets.push_back({{"old_logp", "absent"}, {"sampling_logp", "given"}});
  return sets;
}

std::vector<OptionSet> edges() {
  return {{{"ref_logp", "given"}, {"kl_weight", "0.01"}},
          {{"old_logp", "given"}, {"sampling_logp", "given"}, {"importance_cap", "inf"}}};
}

Pass forward_pass() {
  Pass pass = linear_logits_pass();
  pass.oracle = oracle<Forward>([](auto& a) { reference::linear_policy::forward(a); });
  pass.scale = oracle<Forward>(
      [](auto& a, DType type) { reference::linear_policy::forward_scale(a, type); });
  pass.intermediate = oracle<Forward>(
      [](auto& a, DType type) { reference::linear_policy::forward_intermediate(a, type); });
  pass.implementations = {fused<Forward>(),
                          rounding(kLogProbChainRoundings, naive_chain<Forward>())};
  pass.budget = result_budgets();
  pass.refused = refused_options();
  pass.edges = edges();
  pass.properties = row_properties(with_all(kNone), {});
  return pass;
}

Pass forward_backward_pass() {
  Pass pass = linear_gradient_pass();
  pass.oracle =
      oracle<ForwardBackward>([](auto& a) { reference::linear_policy::forward_backward(a); });
  pass.scale = oracle<ForwardBackward>(
      [](auto& a, DType type) { reference::linear_policy::forward_backward_scale(a, type); });
  pass.intermediate = oracle<ForwardBackward>([](auto& a, DType type) {
    reference::linear_policy::forward_backward_intermediate(a, type);
  });
  pass.underflow = oracle<ForwardBackward>([](auto& a) { underflow(a); });
  pass.implementations = {fused<ForwardBackward>(),
                          rounding(kLogProbChainRoundings, naive_chain<ForwardBackward>())};
  pass.budget.merge(result_budgets());
  pass.upstream = "dloss";
  pass.refused = joined({refused_options(), refused_gradients()});
  pass.edges = edges();
  pass.properties = joined(
      {row_properties(with_all(kNone), {"dw"}),
       {for_policies({DType::kF32, DType::kBF16}, gradient_scaling("dloss", {"dx", "dw"})),
        same_results("neutral_dloss", {.options = {{"dloss", "absent"}}}, {.fill = {{"dloss", 1}}}),
        same_results("neutral_reduction",
                     {.options = {{"reduction", "sum"}}, .fill = {{"dloss", 1}}},
                     {.options = {{"reduction", "none"}}, .fill = {{"dloss", 1}}})}});
  return pass;
}

}  // namespace

OpSpec contract() {
  OpSpec op = linear_op("linear_policy", kFormula);
  op.inputs = inputs();
  op.option_sets = option_sets();
  op.further_options = forms();
  op.huge_options["reduction"] = "none";
  op.passes = {pass<Forward>("forward", forward_pass()),
               pass<ForwardBackward>("forward_backward", forward_backward_pass())};
  return op;
}

}  // namespace tigon::linear_policy
