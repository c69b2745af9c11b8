// SPDX-License-Identifier: Apache-2.0
// "did you mean".
#include "harness/run/cases/known_names.h"

#include <gtest/gtest.h>

#include "harness/judge/verdict.h"

namespace tigon {
namespace {

const std::vector<std::string> kOps = {"rms_norm", "rope", "swiglu", "cross_entropy"};

TEST(KnownNames, edit_distance_counts_single_edits_and_swaps) {
  EXPECT_EQ(edit_distance("rope", "rope"), 0u);
  EXPECT_EQ(edit_distance("rpoe", "rope"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(KnownNames, names_the_nearest_or_nothing) {
  EXPECT_EQ(nearest("rmsnorm", kOps), "rms_norm");
  EXPECT_EQ(nearest("swigul", kOps), "swiglu");
  EXPECT_EQ(nearest("attention", kOps), "");
}

TEST(KnownNames, an_unknown_name_is_one_line_with_all_that_are_known) {
  EXPECT_NO_THROW(require_known("op", {"rope"}, kOps));
  try {
    require_known("op", {"rope", "crossentropy"}, kOps);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "no op 'crossentropy', did you mean 'cross_entropy'?; there are: rms_norm, rope, "
                 "swiglu, cross_entropy");
  }
}

}  // namespace
}  // namespace tigon
