// SPDX-License-Identifier: Apache-2.0
// Inputs of a case and what the oracle makes of them, on the host.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "harness/judge/compare.h"
#include "harness/run/cases/case.h"

namespace tigon {

// One tensor of a case.
struct CaseTensor {
  const TensorInfo* info = nullptr;
  DType dtype = DType::kF32;  // as the implementation stores it
  std::vector<int64_t> shape;
  bool is_input = false, is_output = false;
  std::vector<double> input;  // values of an input, already rounded to dtype
};

// A case made concrete. Tensors that its options leave out are not in the list.
struct Problem {
  Case c;
  const OpSpec* op = nullptr;
  const Pass* pass = nullptr;
  const Implementation* implementation = nullptr;
  Binding binding;
  std::vector<CaseTensor> tensors;
};

// Looks the case up, generates its inputs and computes those that forward saves for backward
// (oracle, rounded to their type). Throws UsageError for a case that the contracts do not know.
Problem make_problem(const Case& c);

// The same case with these inputs, which are values of their types; one that is not named stays as
// it would be generated.
Problem make_problem(const Case& c, const std::map<std::string, std::vector<double>>& inputs);

// The problem's inputs that the pass before saves (rstd, lse), computed again with these options of
// that pass.
void take_saved(Problem* problem, const OptionSet& options);

// What the oracle says about every output.
std::map<std::string, Expected> run_oracle(const Problem& problem);

// The values alone, without what errors are measured by.
std::map<std::string, std::vector<double>> oracle_values(const Problem& problem);

// The budget of one output.
Budget budget_of(const Problem& problem, const CaseTensor& output);

}  // namespace tigon
