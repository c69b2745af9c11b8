// SPDX-License-Identifier: Apache-2.0
// Compares one output with the oracle by a rounding budget per element (README.md): fails
// closed, classifies NaN and infinity first, says where and in which pattern it fails.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "harness/judge/budget.h"
#include "harness/judge/output_result.h"
#include "harness/judge/verdict.h"

namespace tigon {

struct Comparison {
  OutputResult result;
  Verdict verdict = Verdict::kPassed;  // or kNonfinite, kIncorrectNumerical
  std::string reason;                  // one line; empty when passed
  std::vector<int64_t> failing;        // row-major, ascending; the first million
};

// `got` in row-major order of `shape`, already widened to double.
Comparison compare(const std::string& name, const std::vector<double>& got,
                   const Expected& expected, const std::vector<int64_t>& shape,
                   const Budget& budget);

// "; beside it got 1 2 [nan] 4 5 want 1 2 [3] 4 5", the worst element in brackets; empty for a row
// of one.
std::string beside(const OutputResult& result);

// The verdict of several outputs: passed when there is one and every one of them is. The first that
// fails gives the reason; NaN in any of them the verdict.
struct Judgement {
  Verdict verdict = Verdict::kNotRun;
  std::string reason = "no output was compared";
  void add(const Comparison& comparison);
};

}  // namespace tigon
