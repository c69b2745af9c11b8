// SPDX-License-Identifier: Apache-2.0
// How far implementations are from the oracle, on the cell's case made small enough for it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "harness/record/record_writer.h"
#include "harness/run/judging/oracle.h"

namespace tigon::peers {

// The same op, pass, type and options with sizes that the oracle computes in about a second: the
// tokens first, then the largest size is halved. What a size shares with 256 it keeps, and the
// tokens of matrix products what they share with 128, because kernels choose by that.
Case small_case(Case c);

using Outputs = std::map<std::string, std::vector<double>>;

// The oracle's answer to one small case, with which any number of outputs are compared.
class Accuracy {
 public:
  explicit Accuracy(Case c);
  const Problem& problem() const { return problem_; }

  // Fields of an "accuracy" record. The budget is that of the op's first implementation, the fused
  // one: a chain of steps in the element type may leave it and be right. `executor` ran it.
  Json compared(const std::string& implementation, const Outputs& outputs,
                const std::string& executor) const;
  // The same of one that gave no outputs.
  Json without(const std::string& implementation, const std::string& verdict,
               const std::string& reason) const;

 private:
  Case named(const std::string& implementation) const;

  Problem problem_;
  std::map<std::string, Expected> expected_;
};

// One of ours on the problem. Throws Stop.
Outputs outputs_of_ours(const Problem& problem);

}  // namespace tigon::peers
