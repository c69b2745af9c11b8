// SPDX-License-Identifier: Apache-2.0
// The test data of every contract show every option, every optional tensor and every input.
#include "harness/tests/visibility.h"

#include <gtest/gtest.h>

#include "harness/tests/each_op.h"

namespace tigon {
namespace {

class Visibility : public testing::TestWithParam<std::string> {};

TEST_P(Visibility, everything_shows_beyond_its_budget) {
  const OpSpec& op = *find_op(GetParam());
  for (const Pass& pass : op.passes)
    for (const DType dtype : op.policies)
      for (const VisibilityCheck& check : visibility_of(op, pass, dtype))
        EXPECT_TRUE(check.passed()) << text_of(check);
}

INSTANTIATE_TEST_SUITE_P(Ops, Visibility, testing::ValuesIn(op_names()), name_of_parameter);

}  // namespace
}  // namespace tigon
