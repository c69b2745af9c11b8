// SPDX-License-Identifier: Apache-2.0
// Contract of layer_norm.
#include "reference/layer_norm.h"

#include "harness/ops/implementations.h"
#include "harness/ops/input_sets.h"
#include "harness/ops/norm_plan.h"
#include "harness/ops/row_sums.h"
#include "harness/spec/bind.h"
#include "harness/spec/properties.h"

namespace tigon::layer_norm {

namespace {

// Weights are never ones and biases never zeros: a kernel that forgets them must show.
InputSet inputs(const char* name, const char* x, std::map<std::string, double> parameters) {
  return {name,
          {{"x", x, std::move(parameters)},
           {"w", "normal", {{"mean", 1}, {"scale", 0.5}}},
           {"b", "normal", {{"scale", 0.5}}}}};
}

std::vector<InputSet> all_inputs() {
  std::vector<InputSet> sets = {inputs("normal", "normal", {}),
                                inputs("small_rows", "normal", {{"scale", 1e-3}}),
                                inputs("offset", "normal", {{"mean", 100}}),
                                inputs("far", "normal", {{"mean", 1000}}),
                                inputs("constant", "rows_of", {{"value", 1000}}),
                                inputs("outliers", "outliers", {}),
                                inputs("mixed_rows", "mixed_rows", {})};
  const InputSet normal = sets.front();
  sets.push_back(replaced(normal, "zero_weight", plans_of({"w"}, "rows_of", {{"every", 1}})));
  add_special_rows(&sets, {"x"});
  add_nonfinite(&sets, {"x"}, kLargestInNorm);
  add_upstream(&sets, {"dy"});
  return sets;
}

constexpr char kFar[] =
    "cuDNN's engine loses digits of the variance where the mean is 1000 times the spread: rstd is "
    "several times the budget off";
constexpr char kConstant[] =
    "cuDNN's engine finds a variance above 0 in rows of equal values: rstd is many times the "
    "budget "
    "off";

Implementation cudnn_forward() {
  const std::vector<DType> policies = {DType::kF32, DType::kBF16, DType::kF16};
  return known_to_miss({{"far", policies, kFar}, {"constant", policies, kConstant}},
                       cudnn_engine<Forward>());
}

}  // namespace

OpSpec contract() {
  constexpr double kElementary = 10;  // two differences, rsqrt and the products
  return {
      .name = "layer_norm",
      .summary = kFormula,
      .model_part = "layer_norm",
      .axes = norm_axes(T, H),
      // A block per row: more columns than it keeps; rows that stay in shared memory, in turns.
      .further_shapes = {{{"T", 5}, {"H", 4099}}, {{"T", 9}, {"H", 9000}}},
      .inputs = all_inputs(),
      .option_sets = {{},
                      {{"eps", "0.01"}},
                      {{"b", "absent"}, {"db", "absent"}},
                      {{"dw", "absent"}},
                      {{"dw", "absent"}, {"db", "absent"}},
                      {{"dw", "absent"}, {"w", "absent"}},
                      {{"b", "absent"}, {"db", "absent"}, {"dw", "absent"}, {"w", "absent"}}},
      .policies = dtypes_of(types<F32, BF16, F16>),
      .passes =
          {
              pass<Forward>(
                  "forward",
                  {.oracle = oracle<Forward>([](auto& a) { reference::layer_norm::forward(a); }),
                   .scale =
                       oracle<Forward>([](auto& a) { reference::layer_norm::forward_scale(a); }),
                   .implementations = {fused<Forward>(), naive_chain<Forward>(), cudnn_forward()},
                   .budget = {{"y", {.reduction = row_sum_terms(H), .elementary = kElementary}},
                              {"mean", {.reduction = row_sum_terms(H)}},
                              {"rstd", {.reduction = row_sum_terms(H), .elementary = kElementary}}},
                   .flops = 7 * Expr(T) * H,
                   .properties = {row_independence("T"),
                                  scaling("power_of_two", {{"x", 1}}, {{"mean", 1}, {"rstd", -1}},
                                          {{"eps", 2}}),
                                  permutation("H"), dtype_twin(),
                                  same_results("neutral_weight", {.options = {{"w", "absent"}}},
                                               {.fill = {{"w", 1}}}, {}),
                                  same_results("neutral_bias", {.options = {{"b", "absent"}}},
                                               {.fill = {{"b", 0}}}, {})}}),
              pass<Backward>(
                  "backward",
                  {.oracle = oracle<Backward>([](auto& a) { reference::layer_norm::backward(a); }),
                   .scale =
                       oracle<Backward>([](auto& a) { reference::layer_norm::backward_scale(a); }),
                   .implementations = {fused<Backward>(), naive_chain<Backward>(),
                                       cudnn_engine<Backward>()},
                   .budget =
                       {{"dx", {.reduction = row_sum_terms(H), .elementary = kElementary}},
                        {"dw", {.reduction = column_sum_terms(T), .elementary = kElementary}},
                        {"db", {.reduction = column_sum_terms(T)}}},
                   .flops = 13 * Expr(T) * H,
                   .refused = {{{"w", "absent"}}},  // of dw
                   .inputs_from = "forward",
                   .upstream = "dy",
                   .sums_by = "H",
                   .properties =
                       {row_independence("T"),
                        scaling("power_of_two", {{"x", 1}, {"mean", 1}, {"rstd", -1}},
                                {{"dx", -1}}),
                        gradient_scaling("dy", {"dx", "dw", "db"}), permutation("H"), dtype_twin(),
                        same_results("frozen_weight", {}, {.options = {{"dw", "absent"}}}),
                        same_results("frozen_bias", {}, {.options = {{"db", "absent"}}}),
                        orthogonality("dx", {"1", "x"}, {{"eps", "0"}})}}),
          },
  };
}

}  // namespace tigon::layer_norm
