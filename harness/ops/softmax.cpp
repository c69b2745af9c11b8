// SPDX-License-Identifier: Apache-2.0
// Contract of softmax.
#include "reference/softmax.h"

#include "harness/ops/implementations.h"
#include "harness/ops/input_sets.h"
#include "harness/ops/row_sums.h"
#include "harness/spec/bind.h"
#include "harness/spec/properties.h"

namespace tigon::softmax {

namespace {

std::vector<InputSet> all_inputs() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<InputSet> sets = {{"normal", {{"x", "normal", {{"scale", 2}}}}},
                                {"confident", {{"x", "confident"}}},
                                {"certain", {{"x", "confident", {{"margin", 60}}}}},
                                {"shifted", {{"x", "normal", {{"mean", 200}, {"scale", 4}}}}},
                                {"large", {{"x", "normal", {{"scale", 60}}}}},
                                {"last_block", {{"x", "last_block"}}},
                                {"mixed_rows", {{"x", "mixed_rows"}}}};
  add_logits(&sets, "x");
  add_special_rows(&sets, {"x"});
  const InputSet normal = sets.front();
  const auto add_masked = [&](const char* name, const char* distribution,
                              std::map<std::string, double> parameters) {
    sets.push_back(replaced(normal, name, {{"x", distribution, std::move(parameters)}}));
    sets.back().nonfinite = true;
  };
  add_masked("masked", "masked", {});
  add_masked("all_negative_inf", "rows_of", {{"value", -kInfinity}});
  add_nonfinite(&sets, {"x"});
  add_upstream(&sets, {"dy"});
  return sets;
}

// cuDNN rounds twice where rows are not aligned.
constexpr double kForwardRoundings = 1;
// Columns of rows whose maximum is subtracted before anything is multiplied; longer ones are held,
// and one rounding takes both.
constexpr size_t kExactRow = 4096;

}  // namespace

OpSpec contract() {
  return {
      .name = "softmax",
      .summary = kFormula,
      .axes = {{.axis = T,
                .tiny = {1, 3},
                .check = {0, 1, 2, 33, 130},
                .sweep = {1024, 4096, 8192},
                .host_sweep = {8, 32},
                .huge = {16800},
                .refused = {-1},
                .most = INT32_MAX},
               {.axis = V,
                .tiny = {1, 7, 33},
                .check = {1, 2, 7, 8, 9, 127, 1023, 1025, 4099, 270001, 32001},
                .sweep = {32000, 50257, 128256, 151936, 262144},
                .host_sweep = {1024, 4096, 16384},
                .huge = {128256},
                .model_size = ModelSize::kVocabulary,
                .most = INT32_MAX}},
      // Forward: rows that a block holds, with and without shared memory, those that a cluster
      // holds, and rows too wide for both. The backward ring takes rows of 28,681, whose last
      // chunk has one vector.
      .further_shapes = {{{"T", 3}, {"V", 28681}},
                         {{"T", 3}, {"V", 40001}},
                         {{"T", 3}, {"V", 100003}},
                         {{"T", 3}, {"V", 200003}},
                         {{"T", 3}, {"V", 720907}}},
      .further_by_bytes = true,
      .inputs = all_inputs(),
      .option_sets = {{}},
      .policies = dtypes_of(types<F32, BF16, F16>),
      .passes =
          {
              pass<Forward>(
                  "forward",
                  {.oracle = oracle<Forward>([](auto& a) { reference::softmax::forward(a); }),
                   .scale = oracle<Forward>([](auto& a) { reference::softmax::forward_scale(a); }),
                   .implementations = {fused<Forward>(),
                                       rounding(kForwardRoundings, naive_chain<Forward>()),
                                       rounding(kForwardRoundings, cudnn_engine<Forward>())},
                   .budget = {{"y", {.reduction = row_sum_terms(V), .elementary = 16}}},
                   .flops = 5 * Expr(T) * V,
                   .properties = {row_independence("T", kAllRowTrials | kBitwiseIfAligned),
                                  permutation("V"), padding("V", {"x"}),
                                  shift_invariance({"x"},
                                                   {.same = {"y"}, .same_columns = kExactRow}),
                                  dtype_twin()}}),
              pass<Backward>(
                  "backward",
                  {.oracle = oracle<Backward>([](auto& a) { reference::softmax::backward(a); }),
                   .scale =
                       oracle<Backward>([](auto& a) { reference::softmax::backward_scale(a); }),
                   .implementations = {fused<Backward>(), naive_chain<Backward>(),
                                       cudnn_engine<Backward>()},
                   .budget = {{"dx", {.reduction = row_sum_terms(V)}}},
                   .flops = 4 * Expr(T) * V,
                   .inputs_from = "forward",
                   .upstream = "dy",
                   .properties = {row_independence("T", kAllRowTrials | kBitwiseIfAligned),
                                  permutation("V"), gradient_scaling("dy", {"dx"}),
                                  dtype_twin(), orthogonality("dx", {"1"})}}),
          },
  };
}

}  // namespace tigon::softmax
