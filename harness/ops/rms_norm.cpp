// SPDX-License-Identifier: Apache-2.0
// Contract of rms_norm.
#include "reference/rms_norm.h"

#include "harness/ops/implementations.h"
#include "harness/ops/input_sets.h"
#include "harness/ops/norm_plan.h"
#include "harness/ops/row_sums.h"
#include "harness/spec/bind.h"
#include "harness/spec/properties.h"

namespace tigon::rms_norm {

namespace {

// Weights are never ones: a kernel that forgets them must show.
InputSet inputs(const char* name, const char* x, std::map<std::string, double> parameters) {
  return {name, {{"x", x, std::move(parameters)}, {"w", "normal", {{"mean", 1}, {"scale", 0.5}}}}};
}

std::vector<InputSet> all_inputs() {
  std::vector<InputSet> sets = {
      inputs("normal", "normal", {}), inputs("small_rows", "normal", {{"scale", 1e-3}}),
      inputs("offset", "normal", {{"mean", 10}}), inputs("outliers", "outliers", {}),
      inputs("mixed_rows", "mixed_rows", {})};
  const InputSet normal = sets.front();
  sets.push_back(replaced(normal, "zero_weight", plans_of({"w"}, "rows_of", {{"every", 1}})));
  add_special_rows(&sets, {"x"});
  add_nonfinite(&sets, {"x"}, kLargestInNorm);
  add_upstream(&sets, {"dy"});
  return sets;
}

constexpr char kFlushed[] =
    "cuDNN's engine takes denormal values for 0: y is many times the budget off";

Implementation cudnn_forward() {
  return known_to_miss({{"denormal_rows", {DType::kF32, DType::kBF16}, kFlushed}},
                       cudnn_engine<Forward>());
}

}  // namespace

OpSpec contract() {
  return {
      .name = "rms_norm",
      .summary = kFormula,
      .model_part = "rms_norm",
      .axes = norm_axes(T, H),
      .further_shapes = {{{"T", 5}, {"H", 4099}}},  // a block per row, more columns than it keeps
      .inputs = all_inputs(),
      .option_sets = {{},
                      {{"casting", "gemma"}},
                      {{"casting", "gemma"}, {"offset", "1"}},
                      {{"casting", "none"}},
                      {{"casting", "none"}, {"offset", "1"}},
                      {{"offset", "0.5"}},
                      {{"eps", "0.01"}},
                      {{"dw", "absent"}},
                      {{"dw", "absent"}, {"w", "absent"}}},
      .policies = dtypes_of(types<F32, BF16, F16>),
      .passes =
          {
              pass<Forward>(
                  "forward",
                  {.oracle = oracle<Forward>([](auto& a) { reference::rms_norm::forward(a); }),
                   .scale = oracle<Forward>([](auto& a) { reference::rms_norm::forward_scale(a); }),
                   .underflow = oracle<Forward>([](auto& a) {
                     reference::rms_norm::forward(a);
                     casting_underflow(a);
                   }),
                   .implementations = {fused<Forward>(), rounding(4, naive_chain<Forward>()),
                                       cudnn_forward()},
                   .budget = {{"y",
                               {.roundings = kCastingRoundings, .reduction = row_sum_terms(H)}},
                              {"rstd", {.reduction = row_sum_terms(H)}}},
                   .flops = 4 * Expr(T) * H,
                   .properties =
                       {row_independence("T"),
                        scaling("power_of_two", {{"x", 1}}, {{"rstd", -1}}, {{"eps", 2}}),
                        permutation("H"), dtype_twin(), casting("x"),
                        same_results("neutral_weight", {.options = {{"w", "absent"}}},
                                     {.fill = {{"w", 1}}}),
                        for_policies({DType::kF32}, same_results("neutral_casting", {},
                                                                 {.options =
                                                                      {{"casting", "gemma"}}})),
                        for_policies({DType::kF32},
                                     same_results("neutral_rounding",
                                                  {}, {.options = {{"casting", "none"}}}))},
                   .invisible = {{"casting",
                                  "where forward rounds is in the budget's k; property casting"}}}),
              pass<Backward>(
                  "backward",
                  {.oracle = oracle<Backward>([](auto& a) { reference::rms_norm::backward(a); }),
                   .scale =
                       oracle<Backward>([](auto& a) { reference::rms_norm::backward_scale(a); }),
                   .implementations = {fused<Backward>(), rounding(4, naive_chain<Backward>()),
                                       cudnn_engine<Backward>()},
                   .budget =
                       {{"dx", {.reduction = row_sum_terms(H)}},
                        {"dw", {.reduction = column_sum_terms(T)}}},
                   .flops =
                       9 * Expr(T) * H,
                   .refused =
                       {{{"w", "absent"}}},  // of dw
                   .inputs_from = "forward",
                   .upstream =
                       "dy",
                   .sums_by =
                       "H",
                   .properties =
                       {row_independence("T"),
                        scaling("power_of_two", {{"x", 1}, {"rstd", -1}}, {{"dx", -1}}),
                        gradient_scaling("dy", {"dx", "dw"}), permutation("H"), dtype_twin(),
                        same_results("neutral_weight",
                                     {.options = {{"w", "absent"}, {"dw", "absent"}}},
                                     {.options = {{"dw", "absent"}}, .fill = {{"w", 1}}}, {}),
                        same_results("frozen_weight", {}, {.options = {{"dw", "absent"}}}),
                        orthogonality("dx", {"x"}, {{"eps", "0"}})}}),
          },
  };
}

}  // namespace tigon::rms_norm
