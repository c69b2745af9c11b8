// SPDX-License-Identifier: Apache-2.0
// Contract of cross_entropy.
#include "reference/cross_entropy_scale.h"

#include "harness/ops/implementations.h"
#include "harness/ops/loss_plan.h"
#include "harness/ops/row_sums.h"
#include "harness/spec/bind.h"
#include "harness/spec/properties.h"

namespace tigon::cross_entropy {

namespace {

std::vector<InputSet> inputs() {
  std::vector<InputSet> sets = loss_input_sets(V, {{"logits", "normal", {{"scale", 2}}}});
  const InputSet normal = sets.front();
  const auto logits = [&](const char* name, const char* distribution,
                          std::map<std::string, double> parameters) {
    sets.push_back(replaced(normal, name, {{"logits", distribution, std::move(parameters)}}));
  };
  logits("confident", "confident", {});
  logits("shifted", "normal", {{"mean", 200}, {"scale", 4}});
  logits("last_block", "last_block", {});
  logits("mixed_rows", "mixed_rows", {});
  logits("certain", "confident", {{"margin", 60}});
  logits("easy_and_hard", "easy_and_hard", {});
  logits("near_zero_lse", "near_zero_lse", {});
  logits("all_negative_inf", "rows_of", {{"value", -std::numeric_limits<double>::infinity()}});
  sets.back().nonfinite = true;
  add_logits(&sets, "logits");
  add_special_rows(&sets, {"logits"});
  add_nonfinite(&sets, {"logits"}, 1e35);  // losses of up to 2e35, of hundreds of rows, are added
  add_upstream(&sets, {"dloss"});
  return sets;
}

const OptionSet kWeighted = {
    {"class_weight", "given"}, {"label_smoothing", "0.1"}, {"reduction", "none"}};

// `everything`: all that may be given of the pass.
std::vector<Property> row_properties(const OptionSet& everything) {
  return {with_options({{{"reduction", "sum"}}, {{"reduction", "none"}}},
                       row_independence("T", kAllRowTrials | kBitwiseIfAligned)),
          with_options({{}, everything}, ignored_rows("T", "target")), padding("V", {"logits"})};
}

// Softmax minus one-hot sums to 0.
std::vector<Property> gradient_properties() {
  return {gradient_scaling("dloss", {"logits"}), orthogonality("logits", {"1"})};
}

}  // namespace

OpSpec contract() {
  const Expr row_terms = row_sum_terms(V), loss_terms = row_terms + T,
             gradient_terms = row_terms + weight_terms(T, V);
  const OutputBudget loss{.reduction = loss_terms, .elementary = 16};
  const OutputBudget lse{.reduction = row_terms, .elementary = 16};
  const OutputBudget gradient{.reduction = gradient_terms, .elementary = 24};
  return {
      .name = "cross_entropy",
      .summary = kFormula,
      .model_part = kHeadPart,
      .axes = logit_axes(T, V),
      // Rows off 16 bytes: some that a block holds, some of clusters, and one that is too wide for
      // both.
      .further_shapes = {{{"T", 2}, {"V", 70001}},
                         {{"T", 3}, {"V", 200003}},
                         {{"T", 1}, {"V", 800003}}},
      // More rows than a block that adds them has threads.
      .further_shapes_of_one_type = {{{"T", 1100}, {"V", 9}}},
      // Nobody but blocks of ignored rows, which end at once, waits for the kernel before. Rows
      // that are held, with targets next to the last class and with the largest logits.
      .further_inputs = {{{{"T", 3}, {"V", 20001}}, "all_ignored"},
                         {{{"T", 9}, {"V", 20001}}, "invalid_targets"},
                         {{{"T", 9}, {"V", 20001}}, "largest_rows"}},
      .inputs = inputs(),
      .option_sets = loss_option_sets(),
      .further_options = loss_forms(),
      .huge_options = {{"reduction", "none"}},
      .policies = dtypes_of(types<F32, BF16, F16>),
      .passes =
          {
              pass<Forward>(
                  "forward",
                  {.oracle = oracle<Forward>([](auto& a) { reference::cross_entropy::forward(a); }),
                   .scale =
                       oracle<Forward>([](auto& a) { reference::cross_entropy::forward_scale(a); }),
                   .implementations = {fused<Forward>(), naive_loss(naive_chain<Forward>())},
                   .budget = {{"loss", loss},
                              {"lse", lse},
                              {"z_part", loss},
                              {"accuracy", loss},
                              {"entropy", loss}},
                   .flops = 4 * Expr(T) * V,
                   .refused = refused_smoothing(),
                   .edges = full_smoothing(),
                   .rows_apart = {"logits"},
                   .properties = joined(
                       {row_properties(with_results(kWeighted)),
                        loss_properties(),
                        {shift_invariance({"logits"}, {.shifted = {"lse"}, .near = {"loss"}}),
                         first_of_equals()}})}),
              pass<Backward>(
                  "backward",
                  {.oracle =
                       oracle<Backward>([](auto& a) { reference::cross_entropy::backward(a); }),
                   .scale = oracle<Backward>(
                       [](auto& a) { reference::cross_entropy::backward_scale(a); }),
                   .implementations = {fused<Backward>(), naive_loss(naive_chain<Backward>())},
                   .budget = {{"logits", gradient}},
                   .flops = 5 * Expr(T) * V,
                   .refused = refused_smoothing(),
                   .edges = full_smoothing(),
                   .rows_apart = {"logits"},
                   .inputs_from = "forward",
                   .properties =
                       joined({row_properties(kWeighted),
                               loss_properties(),
                               loss_gradient_properties(),
                               gradient_properties(),
                               {shift_invariance({"logits", "lse"}, {.same = {"logits"}})}})}),
              pass<ForwardBackward>("forward_backward",
                                    {.oracle = oracle<ForwardBackward>([](auto& a) {
                                       reference::cross_entropy::forward_backward(a);
                                     }),
                                     .scale = oracle<ForwardBackward>([](auto& a) {
                                       reference::cross_entropy::forward_backward_scale(a);
                                     }),
                                     .implementations = {fused<ForwardBackward>(),
                                                         naive_loss(
                                                             naive_chain<ForwardBackward>())},
                                     .budget = {{"logits", gradient},
                                                {"loss", loss},
                                                {"lse", lse},
                                                {"z_part", loss},
                                                {"accuracy", loss},
                                                {"entropy", loss}},
                                     .flops = 9 * Expr(T) * V,
                                     .refused = refused_smoothing(),
                                     .edges = full_smoothing(),
                                     .rows_apart = {"logits"},
                                     .properties =
                                         joined({row_properties(with_results(kWeighted)),
                                                 loss_properties(),
                                                 loss_gradient_properties(),
                                                 gradient_properties(),
                                                 {shift_invariance({"logits"}, {.shifted = {"lse"},
                                                                                .near = {"loss"}}),
                                                  first_of_equals()}})}),
          },
  };
}

}  // namespace tigon::cross_entropy
