// SPDX-License-Identifier: Apache-2.0
// Bad inputs of every command of the program are refused in one line, and nothing is lost.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/tests/bad_inputs.h"

namespace tigon {
namespace {

TEST(BadInputs, are_refused_in_one_line_and_nothing_is_lost) {
  const BadFiles files;
  size_t refused = 0, all = 0;
  for (const BadInputTable& table : bad_inputs(files)) {
    const auto problems = problems_of(table, files);
    for (const std::string& problem : problems) ADD_FAILURE() << table.name << ": " << problem;
    all += table.inputs.size();
    refused += table.inputs.size() - problems.size();
  }
  EXPECT_GE(all, 60u);
  fmt::print("{} of {} bad inputs refused\n", refused, all);
}

}  // namespace
}  // namespace tigon
