// "did you mean".
#include "harness/cli/options/suggest.h"

#include <gtest/gtest.h>

#include "harness/judge/verdict.h"

namespace tigon::cli {
namespace {

const std::vector<std::string> kOps = {"rms_norm", "rope", "swiglu", "cross_entropy"};

TEST(Suggest, edit_distance_counts_single_edits_and_swaps) {
  EXPECT_EQ(edit_distance("rope", "rope"), 0u);
  EXPECT_EQ(edit_distance("rpoe", "rope"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Suggest, names_the_nearest_or_nothing) {
  EXPECT_EQ(nearest("rmsnorm", kOps), "rms_norm");
  EXPECT_EQ(nearest("swigul", kOps), "swiglu");
  EXPECT_EQ(nearest("attention", kOps), "");
}

TEST(Suggest, an_unknown_name_is_one_line_with_all_that_are_known) {
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
}  // namespace tigon::cli
