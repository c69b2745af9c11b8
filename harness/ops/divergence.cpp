// SPDX-License-Identifier: Apache-2.0
// Contract of divergence.
#include "reference/divergence.h"

#include "harness/ops/implementations.h"
#include "harness/ops/loss_plan.h"
#include "harness/ops/row_sums.h"
#include "harness/spec/bind.h"
#include "harness/spec/properties.h"

namespace tigon::divergence {

namespace {

// Of student and teacher alike, and of one of them.
std::vector<InputSet> all_inputs() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<InputSet> sets =
      target_input_sets(V, {{"logits", "normal", {{"scale", 2}}},
                            {"teacher", "normal", {{"mean", 0.5}, {"scale", 2}}},
                            {"dloss", "normal", {{"mean", 1.5}, {"scale", 0.5}}}});
  std::erase_if(sets, [](const InputSet& set) { return set.name == "invalid_targets"; });
  const InputSet normal = sets.front();
  const auto add = [&](const char* name, const char* tensor, const char* distribution,
                       std::map<std::string, double> parameters = {}) {
    sets.push_back(replaced(normal, name, {{tensor, distribution, std::move(parameters)}}));
    return &sets.back();
  };
  add("student_certain", "logits", "last_block", {{"margin", 60}});
  add("teacher_certain", "teacher", "last_block", {{"margin", 60}});
  sets.push_back(replaced(normal, "shifted",
                          {{"logits", "normal", {{"mean", 200}, {"scale", 4}}},
                           {"teacher", "normal", {{"mean", -200}, {"scale", 4}}}}));
  add("mixed_rows", "logits", "mixed_rows");
  add("near_zero_lse", "logits", "near_zero_lse");
  add("student_masked", "logits", "masked")->nonfinite = true;
  add("teacher_masked", "teacher", "masked")->nonfinite = true;
  add("all_negative_inf", "logits", "rows_of", {{"value", -kInfinity}})->nonfinite = true;
  sets.push_back(replaced(normal, "both_masked", plans_of({"logits", "teacher"}, "masked")));
  sets.back().nonfinite = true;
  add_logits(&sets, "logits");
  add_special_rows(&sets, {"logits", "teacher"});
  add_nonfinite(&sets, {"logits", "teacher"}, 1e35);  // divided by a temperature of 0.01
  add_upstream(&sets, {"dloss"});
  return sets;
}

std::vector<OptionSet> all_options() {
  return {{},
          kReverse,
          kMixed,
          {{"kind", "jsd"}, {"beta", "0.1"}},
          {{"temperature", "0.7"}, {"target", "given"}},
          {{"temperature", "0.01"}, {"kind", "jsd"}},
          {{"temperature", "100"}, {"kind", "reverse_kl"}},
          {{"target", "given"}, {"ignore_index", "0"}, {"kind", "jsd"}, {"temperature", "2"}}};
}

// Promises of both passes, with each kind.
std::vector<Property> row_properties() {
  return {with_options(kKinds, row_independence("T", kAllRowTrials | kBitwiseIfAligned)),
          with_options({{{"target", "given"}}, {{"target", "given"}, {"kind", "jsd"}}},
                       ignored_rows("T", "target")),
          with_options(kKinds, permutation("V")),
          with_options(kKinds, dtype_twin()),
          of_one_shape(
              same_results("jsd_from_one_end", {}, {.options = {{"kind", "jsd"}, {"beta", "0"}}})),
          of_one_shape(same_results("jsd_from_the_other", {.options = kReverse},
                                    {.options = {{"kind", "jsd"}, {"beta", "1"}}})),
          of_one_shape(same_results("neutral_target", {},
                                    {.options = {{"target", "given"}, {"ignore_index", "-1"}}})),
          of_one_shape(with_options(kKinds, scaling("temperature", {{"logits", 1}, {"teacher", 1}},
                                                    {{"dlogits", -1}}, {{"temperature", 1}})))};
}

std::vector<Property> forward_properties() {
  std::vector<Property> all = row_properties();
  all.push_back(with_options(
      {{}, kMixed}, shift_invariance({"logits"}, {.shifted = {"lse"}, .near = {"loss", "slope"}})));
  all.push_back(with_options(kKinds, padding("V", {"logits", "teacher"})));
  all.push_back(judged("jsd_on_largest_rows",
                       "near the oracle where a rounding is a large power of 2", "largest_rows",
                       {{{"kind", "jsd"}, {"temperature", "0.01"}}}));
  return all;
}

std::vector<Property> backward_properties() {
  std::vector<Property> all = row_properties();
  // All gradients of a row sum to 0.
  all.push_back(with_options(kKinds, orthogonality("dlogits", {"1"})));
  all.push_back(with_options(kKinds, shift_invariance({"logits", "lse"}, {.same = {"dlogits"}})));
  all.push_back(with_options(kKinds, gradient_scaling("dloss", {"dlogits"})));
  // The gradient of forward_kl has no term that could be infinite.
  all.push_back(with_options({kReverse, kMixed}, padding("V", {"logits", "teacher"})));
  return all;
}

}  // namespace

OpSpec contract() {
  const OutputBudget row{.reduction = row_sum_terms(V), .elementary = 16};
  return {
      .name = "divergence",
      .summary = kFormula,
      .model_part = kHeadPart,
      .axes = logit_axes(T, V),
      // Rows off 16 bytes that two, four and eight blocks share. Some thread has as many vectors as
      // its batches of loads have but for one load, and some row is prefetched.
      .further_shapes = {{{"T", 2}, {"V", 45001}},
                         {{"T", 3}, {"V", 90003}},
                         {{"T", 3}, {"V", 370003}}},
      .inputs = all_inputs(),
      .option_sets = all_options(),
      .further_options = {kMixed},
      .policies = dtypes_of(types<F32, BF16, F16>),
      .passes =
          {
              pass<Forward>(
                  "forward",
                  {.oracle = oracle<Forward>([](auto& a) { reference::divergence::forward(a); }),
                   .scale =
                       oracle<Forward>([](auto& a) { reference::divergence::forward_scale(a); }),
                   .implementations = {fused<Forward>(), naive_chain<Forward>()},
                   .budget = {{"loss", row}, {"lse", row}, {"teacher_lse", row}, {"slope", row}},
                   .flops = 12 * Expr(T) * V,
                   .refused = refused_divergences(),
                   .rows_apart = {"logits", "teacher"},
                   .properties = forward_properties()}),
              pass<Backward>(
                  "backward",
                  {.oracle = oracle<Backward>([](auto& a) { reference::divergence::backward(a); }),
                   .scale =
                       oracle<Backward>([](auto& a) { reference::divergence::backward_scale(a); }),
                   .implementations = {fused<Backward>(), naive_chain<Backward>()},
                   .budget = {{"dlogits", {.elementary = 24}}},
                   .flops = 10 * Expr(T) * V,
                   .refused = refused_divergences(),
                   .rows_apart = {"logits", "teacher", "dlogits"},
                   .inputs_from = "forward",
                   .properties = backward_properties()}),
          },
  };
}

}  // namespace tigon::divergence
