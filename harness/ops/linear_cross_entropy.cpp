// SPDX-License-Identifier: Apache-2.0
// Contract of linear_cross_entropy.
#include "reference/linear_cross_entropy.h"

#include "harness/ops/implementations.h"
#include "harness/ops/linear_plan.h"
#include "harness/ops/loss_plan.h"
#include "harness/spec/bind.h"

namespace tigon::linear_cross_entropy {

namespace {

std::vector<InputSet> inputs() {
  std::vector<InputSet> sets = loss_input_sets(V, {{"w", "normal", {{"scale", 0.25}}}});
  const InputSet normal = sets.front();
  add_linear_logits(&sets);
  // Terms of one sign in most sums of dw: what rounds to one side adds up.
  sets.push_back(replaced(normal, "offset",
                          {{"x", "normal", {{"mean", 1}, {"scale", 0.1}}},
                           {"w", "normal", {{"scale", 0.08}}},
                           {"dloss", "normal", {{"mean", 40}}}}));
  // The same of dx, with a z-loss: without it the target's term is as large as all others.
  sets.push_back(replaced(
      normal, "one_sided",
      {{"x", "normal", {{"scale", 0.1}}}, {"w", "normal", {{"mean", 1}, {"scale", 0.1}}}}));
  sets.push_back(replaced(normal, "zero_weight", plans_of({"w"}, "rows_of", {{"every", 1}})));
  add_special_rows(&sets, {"x"});
  add_nonfinite(&sets, {"x"}, 1000);
  // Logits are stored: beyond 300 their rounding to bf16 moves a probability by more than its own
  // size, which no bound of first order covers.
  sets.back() = replaced(sets.back(), "largest_rows", {{"w", "normal", {{"scale", 0.01}}}});
  add_upstream(&sets, {"dloss"});
  return sets;
}

template <class Args>
void underflow(const Args& a) {
  for (const auto* out : {&a.loss, &a.lse, &a.z_part, &a.accuracy, &a.entropy})
    if (*out) reference::array(*out).setOnes();
  gradients_underflow(a);
}

const OptionSet kByColumns = {{"split", "vocabulary"}, {"logits_bytes", "200"}};
const OptionSet kWithBias = {{"bias", "given"}, {"dbias", "given"}};

// Each form of the loss in columns, and rows that are gathered for chunks that are summed. The
// forms in rows are kernels of cross_entropy, whose plan has them.
std::vector<OptionSet> forms() {
  std::vector<OptionSet> forms = {together(kByColumns, kWithBias)};
  for (const OptionSet& form : loss_forms()) forms.push_back(together(kByColumns, form));
  forms.push_back(together({{"max_valid_rows", "1000"}, {"logits_bytes", "2600"}}, kWithBias));
  return forms;
}

std::vector<OptionSet> option_sets() {
  std::vector<OptionSet> sets = loss_option_sets();
  // Chunks of a few rows, the last one shorter; chunks of one row.
  for (const char* bytes : {"2600", "200"}) sets.push_back({{"logits_bytes", bytes}});
  sets.push_back({{"logits_bytes", "2600"},
                  {"label_smoothing", "0.1"},
                  {"z_loss", "0.01"},
                  {"softcap", "10"},
                  {"reduction", "none"}});
  sets.push_back(
      with_results({{"logits_bytes", "2600"}, {"class_weight", "given"}, {"reduction", "none"}}));
  sets.push_back(
      with_results({{"class_weight", "given"}, {"z_loss", "0.01"}, {"normaliser", "given"}}));
  sets.push_back(kByColumns);
  // No memory of dw that holds logits: many chunks in the scratch, or the first of fewer columns.
  const OptionSet to_accum = {
      {"dw", "absent"}, {"dw_accum", "given"}, {"bias", "given"}, {"dbias", "given"}};
  sets.push_back(together(kByColumns, to_accum));
  sets.push_back(together({{"split", "vocabulary"}, {"logits_bytes", "3200"}}, to_accum));
  sets.push_back(
      together(kByColumns, {{"label_smoothing", "0.1"}, {"z_loss", "0.01"}, {"softcap", "10"}}));
  sets.push_back(together(
      with_results({{"class_weight", "given"}, {"label_smoothing", "0.1"}, {"reduction", "none"}}),
      {{"split", "vocabulary"}, {"logits_bytes", "3200"}}));
  // More than there are; fewer than some shapes have, which must be told.
  sets.push_back({{"max_valid_rows", "1000"}, {"logits_bytes", "2600"}});
  sets.push_back(with_results({{"max_valid_rows", "3"}, {"reduction", "none"}}));
  sets.push_back({{"dx", "absent"}});
  sets.push_back({{"dw", "absent"}});
  sets.push_back({{"dw", "absent"}, {"logits_bytes", "2600"}});
  sets.push_back(kWithBias);
  sets.push_back(together(kWithBias, {{"logits_bytes", "2600"}, {"softcap", "5"}}));
  sets.push_back(together(kWithBias, {{"dx", "absent"}, {"dw", "absent"}}));
  for (const char* to : {"dw_fp32", "dw_accum"}) {
    sets.push_back({{"dw", "absent"}, {to, "given"}});
    sets.push_back({{"dw", "absent"}, {to, "given"}, {"logits_bytes", "2600"}});
  }
  return sets;
}

constexpr const char* kChunks = "how logits are cut into chunks; properties chunk_size, columns";

// The memory of dw holds logits; without it there are many chunks of eight columns.
const std::vector<OptionSet> kCut = {{}, {{"z_loss", "10"}}};
const std::vector<OptionSet> kCutGradient = {
    {}, {{"z_loss", "10"}}, {{"z_loss", "10"}, {"dw", "absent"}}};

// Where a row lies in a product, and of how many rows it is, may change the order of its sums.
const OptionSet kEverything =
    with_results({{"class_weight", "given"}, {"label_smoothing", "0.1"}, {"reduction", "none"}});

// `cut`: with what the vocabulary is cut.
std::vector<Property> row_properties(std::vector<std::string> sums_of_rows,
                                     std::vector<OptionSet> cut) {
  return {
      with_options({{{"reduction", "sum"}}, {{"reduction", "none"}}},
                   row_independence("T", kAllRowTrials | kWithinBudgets)),
      with_options({{}, kEverything}, ignored_rows("T", "target", std::move(sums_of_rows))),
      // A quarter of 33 rows is ignored.
      on_inputs("some_ignored",
                with_options({{}, together(kEverything, {{"split", "vocabulary"}})},
                             same_results("ignored_rows_left_out", {},
                                          {.options = {{"max_valid_rows", "30"}}}, {}))),
      on_inputs("all_ignored", of_one_shape(same_results("no_valid_row", {},
                                                         {.options = {{"max_valid_rows", "0"}}}))),
      same_results("chunk_size", {}, {.options = {{"logits_bytes", "2000"}}}, {}),
      on_inputs("one_sided",
                with_options(std::move(cut), same_results("columns", {},
                                                          {.options = {{"split", "vocabulary"},
                                                                       {"logits_bytes", "200"}}},
                                                          {}))),
      row_gaps(false)};
}

}  // namespace

OpSpec contract() {
  // The sums on the way: x w^T over H, the softmax over V, a reduced loss and dw over T. Logits and
  // their gradient are stored in the element type.
  const Expr row_terms = Expr(H) + row_sum_terms(V), all_terms = row_terms + T;
  const OutputBudget gradient{
      .reduction = row_terms + weight_terms(T, V), .elementary = 24, .intermediate_roundings = 1};
  const OutputBudget of_row{.reduction = row_terms, .elementary = 24, .intermediate_roundings = 1};
  const OutputBudget of_all{.reduction = all_terms, .elementary = 24, .intermediate_roundings = 1};
  // What its kernels move: the logits come from one product and their gradient goes to two more,
  // and the traffic of products is not counted.
  const Expr elem{"elem", [](const Binding& b) { return b.at("elem"); }};
  const Expr logits_bytes = Expr(T) * V * elem;
  const Product logits{.m = T, .n = V, .k = H, .transpose_b = true};
  const Product dx{.m = T, .n = H, .k = V, .outputs = {"dx"}};
  const Product dw{
      .m = V, .n = H, .k = T, .transpose_a = true, .outputs = {"dw", "dw_fp32", "dw_accum"}};
  return {
      .name = "linear_cross_entropy",
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
      .huge_options = {{"reduction", "none"}, {"logits_bytes", "8388608"}},
      .policies = dtypes_of(types<F32, BF16, F16>),
      .passes =
          {
              pass<Forward>(
                  "forward",
                  {.oracle = oracle<Forward>(
                       [](auto& a) { reference::linear_cross_entropy::forward(a); }),
                   .scale = oracle<Forward>(
                       [](auto& a) { reference::linear_cross_entropy::forward_scale(a); }),
                   .intermediate = oracle<Forward>(
                       [](auto& a) { reference::linear_cross_entropy::forward_intermediate(a); }),
                   .implementations = {fused<Forward>(), naive_loss(naive_chain<Forward>())},
                   .budget = {{"loss", of_all},
                              {"lse", of_row},
                              {"z_part", of_all},
                              {"accuracy", of_all},
                              {"entropy", of_all}},
                   .flops = 2 * Expr(T) * H * V,
                   .bytes = logits_bytes,
                   .products = {logits},
                   .zero_columns = {"H", "x"},
                   .properties = joined({row_properties({}, kCut), loss_properties()}),
                   .invisible = {{"logits_bytes", kChunks}, {"split", kChunks}}}),
              pass<ForwardBackward>(
                  "forward_backward",
                  {.oracle = oracle<ForwardBackward>(
                       [](auto& a) { reference::linear_cross_entropy::forward_backward(a); }),
                   .scale = oracle<ForwardBackward>(
                       [](auto& a) { reference::linear_cross_entropy::forward_backward_scale(a); }),
                   .intermediate = oracle<ForwardBackward>([](auto& a) {
                     reference::linear_cross_entropy::forward_backward_intermediate(a);
                   }),
                   .underflow = oracle<ForwardBackward>([](auto& a) { underflow(a); }),
                   .implementations = {fused<ForwardBackward>(),
                                       naive_loss(naive_chain<ForwardBackward>())},
                   .budget = {{"loss", of_all},
                              {"lse", of_row},
                              {"dx", gradient},
                              {"dw", of_all},
                              {"dw_fp32", of_all},
                              {"dw_accum", of_all},
                              {"dbias", of_all},
                              {"z_part", of_all},
                              {"accuracy", of_all},
                              {"entropy", of_all}},
                   .flops = 6 * Expr(T) * H * V,
                   .bytes = 2 * logits_bytes,
                   .products = {logits, dx, dw},
                   .upstream = "dloss",
                   .zero_columns = {"H", "x"},
                   .properties = joined({row_properties({"dw"}, kCutGradient),
                                         loss_properties(),
                                         loss_gradient_properties(),
                                         {for_policies({DType::kF32, DType::kBF16},
                                                       gradient_scaling("dloss", {"dx", "dw"}))}}),
                   .invisible = {{"logits_bytes", kChunks},
                                 {"split", kChunks},
                                 {"dw_accum", "where dw goes; its cases compare it"}}}),
          },
  };
}

}  // namespace tigon::linear_cross_entropy
