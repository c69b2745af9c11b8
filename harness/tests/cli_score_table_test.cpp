// SPDX-License-Identifier: Apache-2.0
// When a score of planted faults is enough.
#include "harness/cli/text/score_table.h"

#include <gtest/gtest.h>

namespace tigon::cli {
namespace {

ScoreTable table_of(const Mutant& mutant, const std::vector<MutantOutcome>& outcomes) {
  ScoreTable table;
  for (const MutantOutcome outcome : outcomes) {
    MutantResult result;
    result.mutant = &mutant;
    result.op = "rope";
    result.outcome = outcome;
    table.add(result);
  }
  return table;
}

TEST(Score, is_enough_from_the_percent_that_is_wanted) {
  using enum MutantOutcome;
  const Mutant mutant;
  const ScoreTable table =
      table_of(mutant, {kCaught, kCaught, kCaught, kSurvived, kEquivalent, kNotApplicable});
  EXPECT_TRUE(table.is_enough(75, 1));
  EXPECT_FALSE(table.is_enough(76, 1));
  EXPECT_FALSE(table.is_enough(75, 2)) << "something else failed";
}

TEST(Score, of_a_fault_that_could_not_be_run_is_not_enough) {
  using enum MutantOutcome;
  const Mutant mutant;
  EXPECT_FALSE(table_of(mutant, {kCaught, kCaught, kCaught, kInvalid}).is_enough(1, 1));
}

}  // namespace
}  // namespace tigon::cli
