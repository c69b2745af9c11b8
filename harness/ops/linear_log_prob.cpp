// SPDX-License-Identifier: Apache-2.0
// Contract of linear_log_prob.
#include "reference/linear_log_prob.h"

#include "harness/ops/implementations.h"
#include "harness/ops/linear_plan.h"
#include "harness/ops/loss_plan.h"
#include "harness/spec/bind.h"
#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"

namespace tigon::linear_log_prob {

namespace {

std::vector<InputSet> inputs() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto with_targets = [](const char* name, std::map<std::string, double> parameters) {
    return InputSet{name,
                    {{"w", "normal", {{"scale", 0.25}}},
                     {"target", "targets", std::move(parameters), V},
                     {"dlogp", "normal", {{"mean", 1.5}, {"scale", 0.5}}},
                     {"dentropy", "normal", {{"mean", -0.8}, {"scale", 0.25}}}}};
  };
  std::vector<InputSet> sets = {with_targets("normal", {}),
                                with_targets("some_ignored", {{"ignored", 0.25}}),
                                with_targets("all_ignored", {{"ignored", 1}}),
                                with_targets("invalid_targets", {{"invalid", 0.3}})};
  const InputSet normal = sets.front();
  add_linear_logits(&sets);
  // Of which a temperature of 0.01 makes ordinary ones.
  sets.push_back(replaced(normal, "small_logits", {{"w", "normal", {{"scale", 0.0025}}}}));
  // Terms of one sign in most sums of dw: what rounds to one side adds up.
  sets.push_back(replaced(normal, "offset",
                          {{"x", "normal", {{"mean", 1}, {"scale", 0.1}}},
                           {"w", "normal", {{"scale", 0.08}}},
                           {"dlogp", "normal", {{"mean", 40}}}}));
  sets.push_back(replaced(normal, "zero_weight", plans_of({"w"}, "rows_of", {{"every", 1}})));
  sets.push_back(replaced(normal, "masked", {{"bias", "one_element", {{"value", -kInfinity}}}}));
  sets.back().nonfinite = true;
  add_special_rows(&sets, {"x"});
  add_nonfinite(&sets, {"x"}, 1000);
  // Logits are stored: beyond 300 their rounding to bf16 moves a probability by more than its own
  // size, which no bound of first order covers.
  sets.back() = replaced(sets.back(), "largest_rows", {{"w", "normal", {{"scale", 0.01}}}});
  add_upstream(&sets, {"dlogp", "dentropy"});
  return sets;
}

const OptionSet kByColumns = {{"split", "vocabulary"}, {"logits_bytes", "200"}};
const OptionSet kWithBias = {{"bias", "given"}, {"dbias", "given"}};
const OptionSet kInChunks = {{"logits_bytes", "2600"}};

// The entropy with its gradient, beside other options.
OptionSet with_entropy(OptionSet options = {}) {
  options["entropy"] = options["dentropy"] = "given";
  return options;
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
      // Chunks of which the last, at the first columns, is not full.
      with_entropy(together({{"split", "vocabulary"}, {"logits_bytes", "3200"}}, kWithBias)),
      // More than there are; fewer than some shapes have, which must be told.
      together(kInChunks, {{"max_valid_rows", "1000"}}),
      with_entropy({{"max_valid_rows", "3"}}),
      {{"dx", "absent"}},
      {{"dw", "absent"}},
      together(kInChunks, {{"dw", "absent"}}),
      kWithBias,
      with_entropy(together(kWithBias, kInChunks)),
      together(kWithBias, {{"dx", "absent"}, {"dw", "absent"}})};
  for (const char* to : {"dw_fp32", "dw_accum"}) {
    const OptionSet there = {{"dw", "absent"}, {to, "given"}};
    sets.push_back(there);
    sets.push_back(together(there, kInChunks));
    sets.push_back(together(there, kByColumns));
  }
  return sets;
}

// What meets every input set, beside the defaults.
std::vector<OptionSet> forms() {
  return {with_entropy(kWithBias), with_entropy(together(kByColumns, kWithBias)),
          together({{"max_valid_rows", "1000"}, {"logits_bytes", "2600"}}, kWithBias)};
}

constexpr const char* kChunks = "how logits are cut into chunks; properties chunk_size, columns";

// What a pass has of entropy and bias.
const OptionSet kForwardEntropy = {{"entropy", "given"}}, kForwardBias = {{"bias", "given"}};
const OptionSet kBackwardEntropy = with_entropy();

// Near the oracle where an option meets an input set that it could break on.
std::vector<Property> judged_together(const OptionSet& entropy, const OptionSet& bias) {
  const auto check = [](Experiment& e) { e.judge(e.base(), e.base_outputs()); };
  const auto on = [&](const char* inputs, std::vector<OptionSet> options) {
    return of_one_shape(on_inputs(
        inputs, with_options(std::move(options),
                             {std::string("options_on_") + inputs, "near the oracle", check})));
  };
  const OptionSet cold = together(entropy, {{"temperature", "0.01"}});
  const OptionSet hot = together(entropy, {{"temperature", "100"}});
  const OptionSet masked = together(entropy, bias);
  return {on("small_logits", {cold, together(cold, kByColumns), together(cold, bias)}),
          on("certain", {hot, together(hot, kByColumns)}),
          on("masked", {masked, together(masked, kByColumns)}),
          on("one_negative_inf", {masked, together(masked, kByColumns)})};
}

// Where a row lies in a product, and of how many rows it is, may change the order of its sums.
std::vector<Property> row_properties(const OptionSet& entropy,
                                     std::vector<std::string> sums_of_rows) {
  const std::vector<OptionSet> both = {{}, entropy};
  return {
      with_options(both, row_independence("T", kAllRowTrials | kWithinBudgets)),
      with_options(both, ignored_rows("T", "target", std::move(sums_of_rows))),
      // A quarter of 33 rows is ignored.
      on_inputs("some_ignored",
                with_options({{}, together(entropy, {{"split", "vocabulary"}})},
                             same_results("ignored_rows_left_out", {},
                                          {.options = {{"max_valid_rows", "30"}}}, {}))),
      on_inputs("all_ignored", of_one_shape(same_results("no_valid_row", {},
                                                         {.options = {{"max_valid_rows", "0"}}}))),
      with_options(both,
                   same_results("chunk_size", {}, {.options = {{"logits_bytes", "2000"}}}, {})),
      with_options(both, same_results("columns", {}, {.options = kByColumns}, {})), row_gaps(false),
      permutation("V", "target"), dtype_twin(),
      same_results("neutral_ignore_index", {}, {.options = {{"ignore_index", "-1"}}})};
}

std::vector<Property> gradient_properties() {
  return {for_policies({DType::kF32, DType::kBF16}, gradient_scaling("dlogp", {"dx", "dw"})),
          same_results("neutral_dentropy", {},
                       {.options = kBackwardEntropy, .fill = {{"dentropy", 0}}})};
}

// The chain rounds x / temperature, and with the entropy p, log p and their product, all in fp32.
constexpr double kChainRoundings = 4;

}  // namespace

OpSpec contract() {
  // The sums on the way: x w^T over H, the softmax over V, dw over T. Logits and their gradient are
  // stored in the element type.
  const Expr row_terms = Expr(H) + row_sum_terms(V);
  const OutputBudget of_row{.reduction = row_terms, .elementary = 24, .intermediate_roundings = 1};
  const OutputBudget of_all{
      .reduction = row_terms + T, .elementary = 24, .intermediate_roundings = 1};
  // What its kernels move: the logits come from one product and their gradient goes to two more,
  // and the traffic of products is not counted.
  const Expr elem{"elem", [](const Binding& b) { return b.at("elem"); }};
  const Expr logits_bytes = Expr(T) * V * elem;
  const Product logits{.m = T, .n = V, .k = H, .transpose_b = true};
  const Product dx{.m = T, .n = H, .k = V, .outputs = {"dx"}};
  const Product dw{
      .m = V, .n = H, .k = T, .transpose_a = true, .outputs = {"dw", "dw_fp32", "dw_accum"}};
  return {
      .name = "linear_log_prob",
      .summary = kFormula,
      .model_part = kHeadPart,
      .axes = {{.axis = T,
                .tiny = {1, 5},
                .check = {0, 1, 33, 70},
                .sweep = {1024, 4096, 8192},
                .host_sweep = {16, 64},
                .huge = {589824}},  // 9 or 18 chunks, see huge_options
               {.axis = H,
                .tiny = {8},
                .check = {1, 8, 65, 128},
                .sweep = {4096},
                .host_sweep = {64},
                .huge = {4096},
                .model_size = ModelSize::kHidden},
               {.axis = V,
                .tiny = {7, 33},
                .check = {2, 9, 127, 1000, 4099},
                .sweep = {32000, 128256, 262144},
                .host_sweep = {1024, 4096},
                .huge = {64},
                .model_size = ModelSize::kVocabulary}},
      .further_shapes = {{{"T", 1100}, {"H", 8}, {"V", 9}}},  // more rows than a block has threads
      .inputs = inputs(),
      .option_sets = option_sets(),
      .further_options = forms(),
      // Chunks of 65,536 rows (f32: 32,768), so that a launch on as many is one of the same
      // products.
      .huge_options = {{"logits_bytes", "8388608"}},
      .policies = dtypes_of(types<F32, BF16, F16>),
      .passes =
          {
              pass<Forward>("forward",
                            {.oracle = oracle<Forward>(
                                 [](auto& a) { reference::linear_log_prob::forward(a); }),
                             .scale = oracle<Forward>(
                                 [](auto& a) { reference::linear_log_prob::forward_scale(a); }),
                             .intermediate = oracle<Forward>([](auto& a) {
                               reference::linear_log_prob::forward_intermediate(a);
                             }),
                             .implementations = {fused<Forward>(),
                                                 rounding(kChainRoundings, naive_chain<Forward>())},
                             .budget = {{"logp", of_row}, {"lse", of_row}, {"entropy", of_row}},
                             .flops = 2 * Expr(T) * H * V,
                             .bytes = logits_bytes,
                             .products = {logits},
                             .zero_columns = {"H", "x"},
                             .properties = joined({row_properties(kForwardEntropy, {}),
                                                   judged_together(kForwardEntropy, kForwardBias)}),
                             .invisible = {{"logits_bytes", kChunks}, {"split", kChunks}}}),
              pass<Backward>(
                  "backward", {.oracle = oracle<Backward>(
                                   [](auto& a) { reference::linear_log_prob::backward(a); }),
                               .scale = oracle<Backward>(
                                   [](auto& a) { reference::linear_log_prob::backward_scale(a); }),
                               .intermediate = oracle<Backward>([](auto& a) {
                                 reference::linear_log_prob::backward_intermediate(a);
                               }),
                               .underflow =
                                   oracle<Backward>([](auto& a) { gradients_underflow(a); }),
                               .implementations = {fused<Backward>(),
                                                   rounding(kChainRoundings,
                                                            naive_chain<Backward>())},
                               .budget = {{"dx", of_row},
                                          {"dw", of_all},
                                          {"dw_fp32", of_all},
                                          {"dw_accum", of_all},
                                          {"dbias", of_all}},
                               .flops = 6 * Expr(T) * H * V,
                               .bytes = 2 * logits_bytes,
                               .products = {logits, dx, dw},
                               .inputs_from = "forward",
                               .upstream = "dlogp",
                               .zero_columns = {"H", "x"},
                               .properties = joined({row_properties(kBackwardEntropy, {"dw"}),
                                                     judged_together(kBackwardEntropy, kWithBias),
                                                     gradient_properties()}),
                               .invisible = {{"logits_bytes", kChunks},
                                             {"split", kChunks},
                                             {"dw_accum", "where dw goes; its cases compare it"}}}),
          },
  };
}

}  // namespace tigon::linear_log_prob
