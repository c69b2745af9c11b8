// SPDX-License-Identifier: Apache-2.0
// What the contracts of losses behind a linear layer share.
#pragma once
#include <string>
#include <vector>

#include "harness/ops/loss_plan.h"
#include "harness/spec/op_spec.h"
#include "reference/linear_head.h"

namespace tigon {

// ---- inputs -------------------------------------------------------------------------------------

// Adds sets of w, and of x, that make special logits. The front set is the normal one.
void add_linear_logits(std::vector<InputSet>* sets);

// Terms of one sign in most sums of dw: what rounds to one side adds up.
InputSet linear_offset(const InputSet& normal, const char* upstream);
InputSet linear_zero_weight(const InputSet& normal);

// Adds sets of special rows of x and of the upstream gradients.
void add_linear_rows(std::vector<InputSet>* sets, const std::vector<std::string>& upstream);

// ---- options ------------------------------------------------------------------------------------

// Chunks of eight columns; of more, the last one, at the first columns, not full; of a few rows.
const OptionSet kByColumns = {{"split", "vocabulary"}, {"logits_bytes", "200"}};
const OptionSet kByWideColumns = {{"split", "vocabulary"}, {"logits_bytes", "3200"}};
const OptionSet kInChunks = {{"logits_bytes", "2600"}};
const OptionSet kWithBias = {{"bias", "given"}, {"dbias", "given"}};
const OptionSet kFp32Dx = {{"dx", "absent"}, {"dx_fp32", "given"}};
// A bound above the rows of every shape that meets options.
const OptionSet kValidRows = {{"max_valid_rows", "1200"}, {"logits_bytes", "2600"}};

// ---- properties ---------------------------------------------------------------------------------

// Rows alone with the options `rows`, and left out where they are ignored; `everything`: all that
// may be given of the pass. Where a row lies in a product, and of how many rows it is, may change
// the order of its sums.
std::vector<Property> linear_row_properties(std::vector<OptionSet> rows,
                                            const OptionSet& everything,
                                            std::vector<std::string> sums_of_rows);

// The scratch holds no more logits of each of the heads than logits_bytes says.
Property logits_in_scratch(int64_t heads);
// Other chunks, by rows and by the vocabulary, give results near each other.
Property chunk_size();
Property columns();

// ---- the op and its passes ----------------------------------------------------------------------

// A result of a row, and one that is summed over rows.
OutputBudget of_row();
OutputBudget of_all_rows();

// Axes, sizes, dtypes.
OpSpec linear_op(const char* name, const char* summary);

// Work of a pass that has the logits alone, and of one with gradients, whose budgets are of dx, dw,
// dw_fp32, dw_accum and dbias.
Pass linear_logits_pass();
Pass linear_gradient_pass();
// Gradients of w in more than one place.
std::vector<OptionSet> refused_gradients();

// U of dx = dlogits w, dw = dlogits^T x and dbias, for dlogits stored in f16.
void gradients_underflow(const reference::linear_head::Layer<double>& layer,
                         const reference::linear_head::Gradients<double>& gradients);
template <class Args>
void linear_underflow(const Args& a) {
  gradients_underflow(reference::linear_head::layer_of(a), reference::linear_head::gradients_of(a));
}

}  // namespace tigon
