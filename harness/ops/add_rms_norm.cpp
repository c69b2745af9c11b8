// SPDX-License-Identifier: Apache-2.0
// Contract of add_rms_norm.
#include "reference/add_rms_norm.h"

#include "harness/ops/implementations.h"
#include "harness/ops/input_sets.h"
#include "harness/ops/norm_plan.h"
#include "harness/ops/row_sums.h"
#include "harness/spec/bind.h"
#include "harness/spec/properties.h"

namespace tigon::add_rms_norm {

namespace {

// Weights are never ones: a kernel that forgets them must show.
InputSet inputs(const char* name, std::map<std::string, double> x,
                std::map<std::string, double> residual) {
  return {name,
          {{"x", "normal", std::move(x)},
           {"residual", "normal", std::move(residual)},
           {"w", "normal", {{"mean", 1}, {"scale", 0.5}}}}};
}

std::vector<InputSet> all_inputs() {
  const std::vector<std::string> kSummands = {"x", "residual"};
  std::vector<InputSet> sets = {inputs("normal", {}, {}),
                                inputs("small_rows", {{"scale", 1e-3}}, {{"scale", 1e-3}}),
                                inputs("offset", {{"mean", 10}}, {}),
                                // As in a deep model: the stream is larger than what a layer adds.
                                inputs("large_stream", {}, {{"scale", 32}}),
                                // Little is left of large numbers, whose norm would be another.
                                inputs("cancelling", {{"mean", 64}}, {{"mean", -64}})};
  const InputSet normal = sets.front();
  const auto add = [&](const char* name, const std::vector<InputPlan>& plans) {
    sets.push_back(replaced(normal, name, plans));
  };
  add("outliers", plans_of(kSummands, "outliers"));
  add("mixed_rows", plans_of(kSummands, "mixed_rows"));
  add("zero_residual", plans_of({"residual"}, "rows_of", {{"every", 1}}));
  add("zero_weight", plans_of({"w"}, "rows_of", {{"every", 1}}));
  add_special_rows(&sets, kSummands);
  add_nonfinite(&sets, {"residual"}, kLargestInNorm);
  add_upstream(&sets, {"dy"});
  return sets;
}

}  // namespace

OpSpec contract() {
  return {
      .name = "add_rms_norm",
      .summary = kFormula,
      .model_part = "rms_norm",
      .axes = norm_axes(T, H),
      // A block per row: more columns than it keeps, and rows that come through shared memory.
      .further_shapes = {{{"T", 5}, {"H", 4099}}, {{"T", 5}, {"H", 8200}}},
      .inputs = all_inputs(),
      .option_sets = {{},
                      {{"casting", "gemma"}},
                      {{"casting", "gemma"}, {"offset", "1"}},
                      {{"casting", "none"}},
                      {{"casting", "none"}, {"offset", "1"}},
                      {{"offset", "0.5"}},
                      {{"eps", "0.01"}},
                      {{"dh", "absent"}},
                      {{"dw", "absent"}},
                      {{"dw", "absent"}, {"w", "absent"}}},
      .policies = dtypes_of(types<F32, BF16, F16>),
      .passes =
          {
              pass<Forward>(
                  "forward",
                  {.oracle = oracle<Forward>(
                       [](auto& a, DType e) { reference::add_rms_norm::forward(a, e); }),
                   .scale = oracle<Forward>(
                       [](auto& a, DType e) { reference::add_rms_norm::forward_scale(a, e); }),
                   .underflow = oracle<Forward>([](auto& a, DType e) {
                     reference::add_rms_norm::forward(a, e);
                     rms_norm::casting_underflow(norm_of(a));
                   }),
                   .implementations = {fused<Forward>(), rounding(4, naive_chain<Forward>())},
                   .budget = {{"h", {.elementary = 1}},
                              {"y",
                               {.roundings = rms_norm::kCastingRoundings,
                                .reduction = row_sum_terms(H)}},
                              {"rstd", {.reduction = row_sum_terms(H)}}},
                   .flops = 5 * Expr(T) * H,
                   .properties =
                       {
                           row_independence("T"),
                           scaling("power_of_two", {{"x", 1}, {"residual", 1}},
                                   {{"h", 1}, {"rstd", -1}}, {{"eps", 2}}),
                           permutation("H"), rms_norm::casting("h"),
                           // In f32 the sum itself would keep what 16 bits round off.
                           on_inputs("zero_residual", dtype_twin()),
                           same_results("neutral_weight", {.options = {{"w", "absent"}}},
                                        {.fill = {{"w", 1}}}),
                           for_policies(
                               {DType::kF32},
                               same_results(
                                   "neutral_casting",
                                   {}, {.options = {{"casting", "gemma"}}})),
                           for_policies(
                               {DType::kF32},
                               same_results(
                                   "neutral_rounding",
                                   {}, {.options = {{"casting", "none"}}}))},
                   .invisible =
                       {{"casting",
                         "where forward rounds is in the budget's k; property casting"}}}),
              pass<Backward>(
                  "backward",
                  {.oracle =
                       oracle<Backward>([](auto& a) { reference::add_rms_norm::backward(a); }),
                   .scale =
                       oracle<Backward>(
                           [](auto& a) { reference::add_rms_norm::backward_scale(a); }),
                   .implementations = {fused<Backward>(), rounding(5, naive_chain<Backward>())},
                   .budget =
                       {{"dx", {.reduction = row_sum_terms(H)}},
                        {"dw", {.reduction = column_sum_terms(T)}}},
                   .flops = 10 * Expr(T) * H,
                   .refused =
                       {{{"w", "absent"}}},  // of dw
                   .inputs_from = "forward",
                   .upstream =
                       "dy",
                   .sums_by =
                       "H",
                   .properties =
                       {row_independence("T"),
                        scaling("power_of_two", {{"h", 1}, {"rstd", -1}, {"dh", -1}}, {{"dx", -1}}),
                        scaling("gradient_scaling", {{"dy", 1}, {"dh", 1}}, {{"dx", 1}, {"dw", 1}}, {}, true),
                        permutation("H"), dtype_twin(),
                        same_results("neutral_weight",
                                     {.options = {{"w", "absent"}, {"dw", "absent"}}},
                                     {.options = {{"dw", "absent"}}, .fill = {{"w", 1}}}, {}),
                        same_results("frozen_weight", {}, {.options = {{"dw", "absent"}}}),
                        same_results("no_stream_gradient", {.options = {{"dh", "absent"}}},
                                     {.fill = {{"dh", 0}}}),
                        with_options({{{"dh", "absent"}}},
                                     orthogonality("dx", {"h"}, {{"eps", "0"}}))}}),
          },
  };
}

}  // namespace tigon::add_rms_norm
