// SPDX-License-Identifier: Apache-2.0
// Cases that a check skips before anything runs.
#include "harness/cli/text/left_out.h"

#include <gtest/gtest.h>

namespace tigon::cli {
namespace {

const char* const kMisses[] = {"layer_norm/forward/cudnn/bf16/T=3,H=8,inputs=far",
                               "layer_norm/forward/cudnn/f32/T=3,H=8,inputs=constant",
                               "rms_norm/forward/cudnn/f32/T=3,H=8,inputs=denormal_rows"};

// How many of these cases are skipped.
size_t skipped(const std::vector<std::string>& ids, const Selection& selection) {
  CheckRequest request;
  for (const std::string& id : ids) request.cases.push_back(parse_case(id));
  const size_t taken = take_left_out(selection, &request).size();
  EXPECT_EQ(taken + request.cases.size(), ids.size());
  return taken;
}

TEST(LeftOut, what_a_library_is_known_to_miss_is_a_skip_with_the_reason) {
  for (const char* id : kMisses) {
    CheckRequest request;
    request.cases = {parse_case(id)};
    const std::vector<CheckResult> taken = take_left_out({}, &request);
    ASSERT_EQ(taken.size(), 1u) << id;
    EXPECT_TRUE(request.cases.empty());
    EXPECT_EQ(taken[0].verdict, Verdict::kSkipped);
    EXPECT_NE(taken[0].reason.find("times the budget"), std::string::npos) << taken[0].reason;
    EXPECT_NE(taken[0].reason.find("--impl cudnn runs it"), std::string::npos) << taken[0].reason;
    EXPECT_NE(taken[0].repro.find("--case '" + case_id(taken[0].c)), std::string::npos);
  }
}

TEST(LeftOut, a_library_or_a_case_that_is_named_runs) {
  const std::vector<std::string> ids(std::begin(kMisses), std::end(kMisses));
  EXPECT_EQ(skipped(ids, {}), ids.size());
  Selection named;
  named.implementations = {"cudnn"};
  EXPECT_EQ(skipped(ids, named), 0u);
  named = {};
  named.cases = ids;
  EXPECT_EQ(skipped(ids, named), 0u);
}

TEST(LeftOut, what_is_not_declared_runs) {
  EXPECT_EQ(skipped({"layer_norm/forward/cudnn/bf16/T=3,H=8",
                     "layer_norm/forward/cudnn/bf16/T=3,H=8,inputs=offset",
                     "layer_norm/forward/naive/bf16/T=3,H=8,inputs=far",
                     "layer_norm/forward/fused/bf16/T=3,H=8,inputs=far",
                     "layer_norm/backward/cudnn/bf16/T=3,H=8,inputs=far",
                     "layer_norm/forward/cudnn/f32/T=3,H=8,inputs=far,prop=permutation",
                     "rms_norm/forward/cudnn/f16/T=3,H=8,inputs=denormal_rows"},
                    {}),
            0u);
}

}  // namespace
}  // namespace tigon::cli
