// SPDX-License-Identifier: Apache-2.0
// Contract of log_prob.
#include "reference/log_prob.h"

#include "harness/ops/implementations.h"
#include "harness/ops/loss_plan.h"
#include "harness/ops/row_sums.h"
#include "harness/spec/bind.h"
#include "harness/spec/properties.h"

namespace tigon::log_prob {

namespace {

std::vector<InputSet> all_inputs() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<InputSet> sets = log_prob_input_sets(V, {{"logits", "normal", {{"scale", 2}}}});
  const InputSet normal = sets.front();
  const auto logits = [&](const char* name, const char* distribution,
                          std::map<std::string, double> parameters = {}) {
    sets.push_back(replaced(normal, name, {{"logits", distribution, std::move(parameters)}}));
    return &sets.back();
  };
  logits("confident", "confident");
  logits("certain", "confident", {{"margin", 60}});  // log-probability 0
  logits("shifted", "normal", {{"mean", 200}, {"scale", 4}});
  logits("last_block", "last_block");
  logits("mixed_rows", "mixed_rows");
  logits("easy_and_hard", "easy_and_hard");
  logits("near_zero_lse", "near_zero_lse");
  logits("masked", "masked")->nonfinite = true;  // the target's logit among the masked ones, too
  logits("all_negative_inf", "rows_of", {{"value", -kInfinity}})->nonfinite = true;
  add_logits(&sets, "logits");
  add_special_rows(&sets, {"logits"});
  add_nonfinite(&sets, {"logits"}, 1e35);  // divided by a temperature of 0.01
  add_upstream(&sets, {"dlogp", "dentropy"});
  return sets;
}

std::vector<OptionSet> all_options() {
  return {{},
          {{"temperature", "0.7"}},
          {{"temperature", "0.01"}},
          {{"temperature", "100"}},
          {{"ignore_index", "0"}},  // a class that occurs
          {{"entropy", "given"}},   // of which nobody takes the gradient
          with_entropy(),
          with_entropy({{"temperature", "0.7"}, {"ignore_index", "0"}}),
          with_entropy({{"temperature", "0.01"}}),
          with_entropy({{"temperature", "100"}})};
}

// The gradient of the entropy takes the entropy.
std::vector<OptionSet> refused_in_backward() {
  std::vector<OptionSet> sets = refused_temperatures();
  sets.push_back({{"dentropy", "given"}});
  return sets;
}

// Without the entropy and with all that a pass has of it.
std::vector<OptionSet> forward_options() { return {{}, {{"entropy", "given"}}}; }
std::vector<OptionSet> backward_options() { return {{}, with_entropy()}; }

// Promises of both passes, with these options.
std::vector<Property> row_properties(const std::vector<OptionSet>& options) {
  return {with_options(options, row_independence("T", kAllRowTrials | kBitwiseIfAligned)),
          with_options(options, ignored_rows("T", "target")),
          with_options(options, padding("V", {"logits"})),
          with_options(options, permutation("V", "target")),
          with_options(options, dtype_twin()),
          same_results("neutral_ignore_index", {}, {.options = {{"ignore_index", "-1"}}})};
}

// Near the oracle where an option meets an input set that it could break on: masked logits and NaN
// in the entropy, logits far apart at an extreme temperature.
std::vector<Property> judged_together(const OptionSet& entropy) {
  std::vector<OptionSet> options = {entropy, entropy, entropy};
  options[1]["temperature"] = "0.01";
  options[2]["temperature"] = "100";
  std::vector<Property> all;
  for (const char* inputs : {"masked", "one_nan", "invalid_targets", "certain", "easy_and_hard"})
    all.push_back(judged(std::string("entropy_of_") + inputs,
                         "near the oracle with the entropy, at three temperatures", inputs,
                         options));
  return all;
}

std::vector<Property> forward_properties() {
  const std::vector<OptionSet> options = forward_options();
  std::vector<Property> all = joined({row_properties(options), judged_together(options.back())});
  all.push_back(
      with_options(options, scaling("temperature", {{"logits", 1}}, {}, {{"temperature", 1}})));
  all.push_back(with_options(
      options, shift_invariance({"logits"}, {.same = {"logp", "entropy"}, .shifted = {"lse"}})));
  return all;
}

std::vector<Property> backward_properties() {
  const std::vector<OptionSet> options = backward_options();
  std::vector<Property> all = joined({row_properties(options), judged_together(options.back())});
  all.push_back(with_options(
      options, scaling("temperature", {{"logits", 1}}, {{"dlogits", -1}}, {{"temperature", 1}})));
  all.push_back(with_options(options, shift_invariance({"logits", "lse"}, {.same = {"dlogits"}})));
  // All gradients of a row sum to 0.
  all.push_back(with_options(options, orthogonality("dlogits", {"1"})));
  all.push_back(gradient_scaling("dlogp", {"dlogits"}));
  all.push_back(with_options({with_entropy()}, linearity({"dlogp", "dentropy"}, {"dlogits"})));
  all.push_back(
      same_results("neutral_dentropy", {}, {.options = with_entropy(), .fill = {{"dentropy", 0}}}));
  return all;
}

}  // namespace

OpSpec contract() {
  const OutputBudget row{.reduction = row_sum_terms(V), .elementary = 16};
  return {
      .name = "log_prob",
      .summary = kFormula,
      .model_part = kHeadPart,
      .axes = logit_axes(T, V),
      // Rows off 16 bytes that two, four and eight blocks share, the last with more than one batch
      // of loads for each thread.
      .further_shapes = {{{"T", 2}, {"V", 70001}},
                         {{"T", 3}, {"V", 200003}},
                         {{"T", 1}, {"V", 800003}}},
      .inputs = all_inputs(),
      .option_sets = all_options(),
      .further_options = {with_entropy()},
      .policies = dtypes_of(types<F32, BF16, F16>),
      .passes =
          {
              pass<Forward>(
                  "forward",
                  {.oracle = oracle<Forward>([](auto& a) { reference::log_prob::forward(a); }),
                   .scale = oracle<Forward>([](auto& a) { reference::log_prob::forward_scale(a); }),
                   .implementations = {fused<Forward>(),
                                       rounding(kLogProbChainRoundings, naive_chain<Forward>())},
                   .budget = {{"logp", row}, {"lse", row}, {"entropy", row}},
                   .flops = 4 * Expr(T) * V,
                   .refused = refused_temperatures(),
                   .rows_apart = {"logits"},
                   .properties = forward_properties()}),
              pass<Backward>(
                  "backward",
                  {.oracle = oracle<Backward>([](auto& a) { reference::log_prob::backward(a); }),
                   .scale =
                       oracle<Backward>([](auto& a) { reference::log_prob::backward_scale(a); }),
                   .implementations = {fused<Backward>(),
                                       rounding(kLogProbChainRoundings, naive_chain<Backward>())},
                   .budget = {{"dlogits", {.elementary = 24}}},
                   .flops = 5 * Expr(T) * V,
                   .refused = refused_in_backward(),
                   .rows_apart = {"logits", "dlogits"},
                   .inputs_from = "forward",
                   .properties = backward_properties()}),
          },
  };
}

}  // namespace tigon::log_prob
