// SPDX-License-Identifier: Apache-2.0
// Builders of properties, for the `properties` of a pass:
//   .properties = {row_independence("T"), scaling("power_of_two", {{"x", 1}}, {{"rstd", -1}})}
// Tensors, options and axes are named as in the signature. The first argument of a builder that
// takes a name is what stands in the case id as prop=<name>.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "harness/spec/op_spec.h"

namespace tigon {

// ---- modifiers ----------------------------------------------------------------------------------

// The same property, checked with other options (each set is a case), on another input set, for
// some dtypes only, or for libraries too (naive, cudnn).
Property with_options(std::vector<OptionSet> options, Property property);
Property on_inputs(std::string input_set, Property property);
Property for_policies(std::vector<DType> policies, Property property);
Property also_naive(Property property);

// ---- rows ---------------------------------------------------------------------------------------

enum RowTrial : unsigned {
  kNanNeighbours = 1,  // the other rows' inputs are NaN
  kOtherOrder = 2,     // rows are given in reverse
  kInPieces = 4,       // the first row alone, then the rest
  kAnyStride = 32,     // the first row alone, of a stride that means nothing: torch has any there
  kAllRowTrials = 7 + 32,
  // Of the second and third, where moved rows take another path: within the budgets where rows are
  // no multiple of 16 bytes, or always.
  kBitwiseIfAligned = 8,
  kWithinBudgets = 16,
};
// What belongs to a row (every tensor with a dimension of this axis in front) depends on that row
// alone, bitwise.
Property row_independence(std::string axis, unsigned trials = kAllRowTrials);

// In rows whose target is the option ignore_index, inputs may hold anything (NaN, large numbers)
// and every result of the row is 0. Outputs named in `sums` take rows times 0 and are therefore
// tried with finite values only.
Property ignored_rows(std::string axis, std::string target, std::vector<std::string> sums = {});

// Rows that lie apart, of each tensor in turn. Every pass has it bitwise; one whose products are a
// library's, which chooses an order of sums by the pitch, declares it without.
Property row_gaps(bool bitwise = true);

// ---- columns ------------------------------------------------------------------------------------

// The columns of this axis in another order, classes in `target` renumbered with them: the same
// results in that order, within the budgets of both (sums take another order).
Property permutation(std::string axis, std::string target = "");
// More columns of -inf in these tensors: their gradient is exactly 0, the rest stays within the
// budgets.
Property padding(std::string axis, std::vector<std::string> tensors);

struct ShiftedOutputs {
  std::vector<std::string> same = {};     // bitwise, in rows of `same_columns` at most
  std::vector<std::string> shifted = {};  // by c, to 4 ulp of the largest shifted input
  std::vector<std::string> near = {};     // as before, to 4 ulp of the largest shifted input
  size_t same_columns = SIZE_MAX;         // of a row of the first input
};                                        // others: as before, within the budgets
// These inputs plus c, where the sums are exact in their types.
Property shift_invariance(std::vector<std::string> inputs, ShiftedOutputs outputs);

// ---- scaling ------------------------------------------------------------------------------------

// Inputs times f^e and options times f^e give outputs times f^e, bitwise, for powers of two f (and
// f = -1 with `negative`); e by name, 0 for what is not named. Products with a power of two are
// exact.
Property scaling(std::string name, std::map<std::string, int> inputs,
                 std::map<std::string, int> outputs, std::map<std::string, int> options = {},
                 bool negative = false);
// scaling for an upstream gradient: every gradient is scaled with it.
Property gradient_scaling(std::string gradient, const std::vector<std::string>& outputs);
// scaling, with -1 too, for what a pass is linear in.
Property linearity(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

// ---- options and dtypes -------------------------------------------------------------------------

using Axes = std::map<std::string, int64_t>;

// One way to make a call: options and sizes over those of the case, and inputs filled with one
// value.
struct Variant {
  OptionSet options = {};
  std::map<std::string, double> fill = {};
  Axes axes = {};
};
inline const std::vector<std::string> kAllOutputs = {"*"};
// Two ways that must give the same results: bitwise in the outputs named, within the budgets in the
// others. Outputs that only one of them has, or has in another shape, are not compared.
Property same_results(std::string name, Variant one, Variant other,
                      std::vector<std::string> bitwise = kAllOutputs);

// The workspace has room for that many tensors of at most so many bytes each as this option says,
// beside what it takes with one byte and an eighth for what products take, and no less than with
// fewer bytes; at these sizes, other axes as in the case, with every option set.
Property bounded_workspace(std::string option, int64_t tensors, std::vector<Axes> sizes);

// A 16-bit call and one in f32 on the same values agree within the budgets of both.
Property dtype_twin();

// ---- passes -------------------------------------------------------------------------------------

// The pass is another one: its tensors under the other's names, some inputs negated. Bitwise.
Property same_as_pass(std::string name, std::string pass, std::map<std::string, std::string> names,
                      std::vector<std::string> negated);
// The column that a column of a row is turned with at these options: itself where it is not turned.
using Partner = std::function<int64_t(const Binding& options, int64_t columns, int64_t column)>;
// Undoes another pass: on that one's outputs it gives that one's inputs, to 8 u of the norm of each
// pair, bitwise where there is none.
Property inverts_pass(std::string name, std::string pass, std::map<std::string, std::string> names,
                      Partner partner);
// Keeps the norm of every pair of these tensors, to 8 u.
Property pair_norm(std::vector<std::string> tensors, Partner partner);

// The inputs that hold the angles of rows.
struct Angles {
  std::string cosine, sine;
};
// Turning these tensors by two angles one after the other is turning them by the sum, to 8 u of the
// norm of each pair.
Property composition(std::vector<std::string> tensors, Angles angles, Partner partner);
// With the same contents in every row, the product of a head of row m of one tensor and one of row
// n of the other depends on m - n alone, to 8 u of the product of their norms.
Property relative_position(std::string one, std::string other);

// The rows of a gradient are orthogonal to those of `to` ("1": to ones), to
//   sqrt(n) u ||v g||_2 + (sqrt(n) + 24) u_acc sum |v g|
// with the saved inputs taken at `forward_options`, e.g. eps = 0.
Property orthogonality(std::string gradient, std::vector<std::string> to,
                       OptionSet forward_options = {});

// Outputs in the memory of the inputs that the signature lets them alias give the same bits.
// Every pass with such outputs has it.
Property in_place();

// ---- every pass has these -----------------------------------------------------------------------

// Reruns in several thread orders, sizes A B A, replay with new contents, streams, addresses off
// their alignment, rows that lie apart.
std::vector<Property> common_properties();

// Of fused implementations: wrong sizes, strides, options and workspaces are refused, each alone,
// the values that options are compared with are told from their neighbours, and offsets have 64
// bits in every tensor.
std::vector<Property> launcher_properties();
// Whether property far_rows has rows of the tensor apart. Those of other tensors lie apart in cases
// of their own.
bool is_of_far_rows(const Pass& pass, const TensorInfo& info);

}  // namespace tigon
