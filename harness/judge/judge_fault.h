// SPDX-License-Identifier: Apache-2.0
// Faults of the judge itself, as switches in its own source. They exist in one program only,
// judge_faults, which plants one after the other and expects the judge's tests to notice; anywhere
// else every switch is a constant false.
#pragma once

namespace tigon {

enum class JudgeFault {
  kNone,
  // Faults that comparators of other projects were found to have.
  kAcceptsNan,
  kFirstElements,
  kLastVerdict,
  kRelativeToCandidate,
  kSwappedTerms,
  kSkipIsPass,
  kWrongWidth,
  kExitsWell,
  // Further rules of the comparator, each broken alone.
  kAnySignOfInfinity,
  kSkipsNonfiniteOracle,
  kInfinityForFinite,
  kNanBudgetAllows,
  kAnySize,
  kNoRootMeanSquare,
  kNoBias,
  kTiesOneWay,
  kUnevenTies,
  kAbsoluteTolerance,
  kNothingIsGreen,
};

#ifdef TIGON_JUDGE_FAULTS
inline JudgeFault planted_judge_fault = JudgeFault::kNone;
inline bool planted(JudgeFault fault) { return planted_judge_fault == fault; }
#else
constexpr bool planted(JudgeFault) { return false; }
#endif

}  // namespace tigon
