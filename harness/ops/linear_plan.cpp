// SPDX-License-Identifier: Apache-2.0
#include "harness/ops/linear_plan.h"

#include <utility>

#include "harness/ops/row_sums.h"
#include "harness/spec/properties.h"

namespace tigon {

namespace {

// As the ops' signatures name them.
constexpr Axis T{"T", "tokens"}, H{"H", "hidden size"}, V{"V", "vocabulary size"};

}  // namespace

void add_linear_logits(std::vector<InputSet>* sets) {
  const InputSet normal = sets->front();
  const auto add = [&](const char* name, const std::vector<InputPlan>& plans) {
    sets->push_back(replaced(normal, name, plans));
  };
  add("confident", {{"w", "normal"}});
  add("shifted", {{"x", "first_column", {{"value", 4}}},
                  {"w", "first_column", {{"value", 10}, {"scale", 0.25}}}});
  add("far_below", {{"x", "first_column", {{"value", 4}}},
                    {"w", "first_column", {{"value", -30}, {"scale", 0.25}}}});
  // All logits of a row within a step of bf16: they are rounded alike.
  add("narrow", {{"x", "first_column", {{"value", 3}, {"scale", 0.1}}},
                 {"w", "first_column", {{"value", 10.0625}, {"scale", 0.1}}}});
  add("last_block",
      {{"x", "first_column", {{"value", 4}}}, {"w", "last_row", {{"value", 8}, {"scale", 0.25}}}});
  // The target of row 0 is the last class and has nearly all the probability.
  add("certain",
      {{"x", "first_column", {{"value", 4}}}, {"w", "last_row", {{"value", 3}, {"scale", 0.25}}}});
}

InputSet linear_offset(const InputSet& normal, const char* upstream) {
  return replaced(normal, "offset",
                  {{"x", "normal", {{"mean", 1}, {"scale", 0.1}}},
                   {"w", "normal", {{"scale", 0.08}}},
                   {upstream, "normal", {{"mean", 40}}}});
}

InputSet linear_zero_weight(const InputSet& normal) {
  return replaced(normal, "zero_weight", plans_of({"w"}, "rows_of", {{"every", 1}}));
}

void add_linear_rows(std::vector<InputSet>* sets, const std::vector<std::string>& upstream) {
  add_special_rows(sets, {"x"});
  add_nonfinite(sets, {"x"}, 1000);
  // Logits are stored: beyond 300 their rounding to bf16 moves a probability by more than its own
  // size, which no bound of first order covers.
  sets->back() = replaced(sets->back(), "largest_rows", {{"w", "normal", {{"scale", 0.01}}}});
  add_upstream(sets, upstream);
}

std::vector<Property> linear_row_properties(std::vector<OptionSet> rows,
                                            const OptionSet& everything,
                                            std::vector<std::string> sums_of_rows) {
  return {
      with_options(std::move(rows), row_independence("T", kAllRowTrials | kWithinBudgets)),
      with_options({{}, everything}, ignored_rows("T", "target", std::move(sums_of_rows))),
      // A quarter of 33 rows is ignored.
      on_inputs("some_ignored",
                with_options({{}, together(everything, {{"split", "vocabulary"}})},
                             same_results("ignored_rows_left_out", {},
                                          {.options = {{"max_valid_rows", "30"}}}, {}))),
      on_inputs("all_ignored", of_one_shape(same_results("no_valid_row", {},
                                                         {.options = {{"max_valid_rows", "0"}}})))};
}

Property logits_in_scratch(int64_t heads) {
  return bounded_workspace("logits_bytes", heads,
                           {{{"T", 4096}, {"H", 4096}, {"V", 128256}},
                            {{"T", 4096}, {"H", 8}, {"V", 65536}},
                            {{"T", 8}, {"H", 4096}, {"V", 65536}}});
}

Property chunk_size() {
  return same_results("chunk_size", {}, {.options = {{"logits_bytes", "2000"}}}, {});
}

Property columns() { return same_results("columns", {}, {.options = kByColumns}, {}); }

namespace {

// The sums on the way: x w^T over H, the softmax over V, a reduced loss and dw over T. Logits and
// their gradient are stored in the element type.
OutputBudget sums_of(const Expr& terms) {
  return {.reduction = terms, .elementary = 24, .intermediate_roundings = 1};
}
Expr row_terms() { return Expr(H) + row_sum_terms(V); }

constexpr const char* kChunks = "how logits are cut into chunks; properties chunk_size, columns";

// What kernels move: the logits come from one product and their gradient goes to two more, and the
// traffic of products is not counted.
Expr logits_bytes() {
  const Expr elem{"elem", [](const Binding& b) { return b.at("elem"); }};
  return Expr(T) * V * elem;
}

Product logits_product() { return {.m = T, .n = V, .k = H, .transpose_b = true}; }

}  // namespace

OutputBudget of_row() { return sums_of(row_terms()); }
OutputBudget of_all_rows() { return sums_of(row_terms() + T); }

OpSpec linear_op(const char* name, const char* summary) {
  return {
      .name = name,
      .summary = summary,
      .model_part = kHeadPart,
      .axes = {{.axis = T,
                .tiny = {1, 5},
                .check = {0, 1, 33, 70},
                .sweep = {1024, 4096, 8192},
                .host_sweep = {16, 64},
                .huge = {589824},  // 9 or 18 chunks, see huge_options
                .refused = {-1},
                .most = INT32_MAX},
               {.axis = H,
                .tiny = {8},
                .check = {1, 8, 65, 128},
                .sweep = {4096},
                .host_sweep = {64},
                .huge = {4096},
                .model_size = ModelSize::kHidden,
                .most = INT32_MAX},
               {.axis = V,
                .tiny = {7, 33},
                .check = {1, 2, 9, 127, 1000, 4099},
                .sweep = {32000, 128256, 262144},
                .host_sweep = {1024, 4096},
                .huge = {64},
                .model_size = ModelSize::kVocabulary,
                .most = INT32_MAX}},
      // More rows than a block has threads; more columns than a block sums and a segment has, and
      // with a gap of 3 rows of x that begin at 16 bytes and end within them; more rows than a row
      // of dw has elements, so that its memory has room for some columns alone.
      .further_shapes_of_one_type = {{{"T", 1100}, {"H", 8}, {"V", 9}},
                                     {{"T", 3}, {"H", 5}, {"V", 2100}},
                                     {{"T", 24}, {"H", 8}, {"V", 200}}},
      // Logits of a row are held.
      .further_inputs = {{{{"T", 3}, {"H", 8}, {"V", 8209}}, "normal"}},
      .inputs = {},
      .option_sets = {},
      .long_options = {together(kValidRows, kWithBias)},
      // Chunks of 65,536 rows (f32: 32,768), so that a launch on as many is one of the same
      // products.
      .huge_options = {{"logits_bytes", "8388608"}},
      .policies = {DType::kF32, DType::kBF16, DType::kF16},
      .passes = {},
  };
}

Pass linear_logits_pass() {
  Pass pass;
  pass.flops = 2 * Expr(T) * H * V;
  pass.bytes = logits_bytes();
  pass.products = {logits_product()};
  pass.zero_columns = {{"H", "x"}};
  pass.rows_apart = {"x", "w"};
  pass.invisible = {{"logits_bytes", kChunks}, {"split", kChunks}};
  return pass;
}

std::vector<OptionSet> refused_gradients() {
  return {{{"dx_fp32", "given"}},
          {{"dw_fp32", "given"}},
          {{"dw_accum", "given"}},
          {{"dw", "absent"}, {"dw_fp32", "given"}, {"dw_accum", "given"}}};
}

Pass linear_gradient_pass() {
  Pass pass = linear_logits_pass();
  pass.flops = 6 * Expr(T) * H * V;
  pass.bytes = 2 * logits_bytes();
  pass.products.push_back({.m = T, .n = H, .k = V, .outputs = {"dx", "dx_fp32"}});
  pass.products.push_back(
      {.m = V, .n = H, .k = T, .transpose_a = true, .outputs = {"dw", "dw_fp32", "dw_accum"}});
  for (const char* of_rows : {"dx", "dx_fp32"}) pass.budget[of_rows] = of_row();
  pass.rows_apart = {"x", "w", "dx", "dx_fp32", "dw", "dw_fp32", "dw_accum"};
  for (const char* sum : {"dw", "dw_fp32", "dw_accum", "dbias"}) pass.budget[sum] = of_all_rows();
  pass.invisible["dw_accum"] = "where dw goes; its cases compare it";
  return pass;
}

namespace {

// Per column of what multiplies dlogits: the 2-norm, or a quarter of the 1-norm, which makes the
// budget's 2 eta U the bound of half an eta each. With few columns the bits that are lost follow w:
// all dlogits of a row are nearly equal. The logits' own lost bits are below the roundings of their
// sum.
reference::Row<double> column_norms(const reference::Rows<double>& a) {
  return a.square().colwise().sum().sqrt().max(a.abs().colwise().sum() / 4);
}

}  // namespace

void gradients_underflow(const reference::linear_head::Layer<double>& layer,
                         const reference::linear_head::Gradients<double>& gradients) {
  using reference::array;
  reference::linear_head::for_dx(
      gradients, [&](const auto& dx) { array(dx).rowwise() = column_norms(array(layer.w)); });
  reference::linear_head::for_dw(
      gradients, [&](const auto& dw) { array(dw).rowwise() = column_norms(array(layer.x)); });
  if (gradients.dbias) {
    const auto one = reference::Rows<double>::Ones(layer.x.shape[0], 1);
    array(gradients.dbias).setConstant(column_norms(one)[0]);
  }
}

}  // namespace tigon
