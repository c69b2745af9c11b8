// Builders of properties (NUMERICS.md A1.4), for the `properties` of a pass:
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
// some dtypes only, or for the unfused baseline too.
Property with_options(std::vector<OptionSet> options, Property property);
Property on_inputs(std::string input_set, Property property);
Property for_policies(std::vector<DType> policies, Property property);
Property also_naive(Property property);

// ---- rows ---------------------------------------------------------------------------------------

enum RowTrial : unsigned {
  kNanNeighbours = 1,  // the other rows' inputs are NaN
  kOtherOrder = 2,     // rows are given in reverse
  kInPieces = 4,       // the first row alone, then the rest
  kAllRowTrials = 7,
};
// What belongs to a row (every tensor with a dimension of this axis in front) depends on that row
// alone, bitwise.
Property row_independence(std::string axis, unsigned trials = kAllRowTrials);

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

}  // namespace tigon
