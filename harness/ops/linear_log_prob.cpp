// SPDX-License-Identifier: Apache-2.0
// Contract of linear_log_prob.
#include "reference/linear_log_prob.h"

#include "harness/ops/implementations.h"
#include "harness/ops/linear_plan.h"
#include "harness/spec/bind.h"
#include "harness/spec/properties.h"

namespace tigon::linear_log_prob {

namespace {

std::vector<InputSet> inputs() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<InputSet> sets = log_prob_input_sets(V, {{"w", "normal", {{"scale", 0.25}}}});
  const InputSet normal = sets.front();
  add_linear_logits(&sets);
  // Of which a temperature of 0.01 makes ordinary ones.
  sets.push_back(replaced(normal, "small_logits", {{"w", "normal", {{"scale", 0.0025}}}}));
  sets.push_back(linear_offset(normal, "dlogp"));
  sets.push_back(linear_zero_weight(normal));
  sets.push_back(replaced(normal, "masked", {{"bias", "one_element", {{"value", -kInfinity}}}}));
  sets.back().nonfinite = true;
  add_linear_rows(&sets, {"dlogp", "dentropy"});
  return sets;
}

std::vector<OptionSet> option_sets() {
  std::vector<OptionSet> sets = {
      {},
      {{"temperature", "0.8"}},
      {{"temperature", "100"}},
      {{"ignore_index", "0"}},  // a class that occurs
      {{"entropy", "given"}},   // of which nobody takes the gradient
      with_entropy(),
      with_entropy({{"temperature", "0.8"}, {"ignore_index", "0"}}),
      with_entropy({{"temperature", "100"}}),
      // Chunks of a few rows, the last one shorter; chunks of one row.
      kInChunks,
      {{"logits_bytes", "200"}},
      with_entropy(kInChunks),
      kByColumns,
      with_entropy(together(kByColumns, {{"temperature", "0.8"}})),
      with_entropy(together(kByWideColumns, kWithBias)),
      // More than there are; fewer than some shapes have, which must be told.
      kValidRows,
      with_entropy({{"max_valid_rows", "3"}, {"ignore_index", "-1"}}),
      {{"dx", "absent"}},
      {{"dw", "absent"}},
      together(kInChunks, {{"dw", "absent"}}),
      kWithBias,
      with_entropy(together(kWithBias, kInChunks)),
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
  return {with_entropy(kWithBias), with_entropy(together(kByColumns, kWithBias)),
          together(kValidRows, kWithBias)};
}

// What a pass has of entropy and bias.
const OptionSet kForwardEntropy = {{"entropy", "given"}}, kForwardBias = {{"bias", "given"}};
const OptionSet kBackwardEntropy = with_entropy();

// Near the oracle where an option meets an input set that it could break on.
std::vector<Property> judged_together(const OptionSet& entropy, const OptionSet& bias) {
  const auto on = [&](const char* inputs, std::vector<OptionSet> options) {
    return judged(std::string("options_on_") + inputs, "near the oracle", inputs,
                  std::move(options));
  };
  const OptionSet cold = together(entropy, {{"temperature", "0.01"}});
  const OptionSet hot = together(entropy, {{"temperature", "100"}});
  const OptionSet masked = together(entropy, bias);
  return {on("small_logits", {cold, together(cold, kByColumns), together(cold, bias)}),
          on("certain", {hot, together(hot, kByColumns)}),
          on("masked", {masked, together(masked, kByColumns)}),
          on("one_negative_inf", {masked, together(masked, kByColumns)})};
}

std::vector<Property> row_properties(const OptionSet& entropy,
                                     std::vector<std::string> sums_of_rows) {
  const std::vector<OptionSet> both = {{}, entropy};
  return joined(
      {linear_row_properties(both, entropy, std::move(sums_of_rows)),
       {logits_in_scratch(1), with_options(both, chunk_size()), with_options(both, columns()),
        row_gaps(false), permutation("V", "target"), dtype_twin(),
        same_results("neutral_ignore_index", {}, {.options = {{"ignore_index", "-1"}}})}});
}

std::vector<Property> gradient_properties() {
  return {for_policies({DType::kF32, DType::kBF16}, gradient_scaling("dlogp", {"dx", "dw"})),
          same_results("neutral_dentropy", {},
                       {.options = kBackwardEntropy, .fill = {{"dentropy", 0}}})};
}

Pass forward_pass() {
  Pass pass = linear_logits_pass();
  pass.oracle = oracle<Forward>([](auto& a) { reference::linear_log_prob::forward(a); });
  pass.scale = oracle<Forward>([](auto& a) { reference::linear_log_prob::forward_scale(a); });
  pass.intermediate =
      oracle<Forward>([](auto& a) { reference::linear_log_prob::forward_intermediate(a); });
  pass.implementations = {fused<Forward>(),
                          rounding(kLogProbChainRoundings, naive_chain<Forward>())};
  pass.budget = {{"logp", of_row()}, {"lse", of_row()}, {"entropy", of_row()}};
  pass.refused = refused_temperatures();
  pass.properties =
      joined({row_properties(kForwardEntropy, {}), judged_together(kForwardEntropy, kForwardBias)});
  return pass;
}

Pass backward_pass() {
  Pass pass = linear_gradient_pass();
  pass.oracle = oracle<Backward>([](auto& a) { reference::linear_log_prob::backward(a); });
  pass.scale = oracle<Backward>([](auto& a) { reference::linear_log_prob::backward_scale(a); });
  pass.intermediate =
      oracle<Backward>([](auto& a) { reference::linear_log_prob::backward_intermediate(a); });
  pass.underflow = oracle<Backward>([](auto& a) { linear_underflow(a); });
  pass.implementations = {fused<Backward>(),
                          rounding(kLogProbChainRoundings, naive_chain<Backward>())};
  pass.least_flops = 4 * Expr(T) * H * V;  // with logits that forward kept
  pass.inputs_from = "forward";
  pass.upstream = "dlogp";
  pass.refused = joined({refused_temperatures(), refused_gradients(), {{{"dentropy", "given"}}}});
  pass.properties = joined({row_properties(kBackwardEntropy, {"dw"}),
                            judged_together(kBackwardEntropy, kWithBias), gradient_properties()});
  return pass;
}

}  // namespace

OpSpec contract() {
  OpSpec op = linear_op("linear_log_prob", kFormula);
  op.inputs = inputs();
  op.option_sets = option_sets();
  op.further_options = forms();
  op.passes = {pass<Forward>("forward", forward_pass()),
               pass<Backward>("backward", backward_pass())};
  return op;
}

}  // namespace tigon::linear_log_prob
