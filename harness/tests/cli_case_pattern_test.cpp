// SPDX-License-Identifier: Apache-2.0
// What failing cases have in common and others have not.
#include "harness/cli/options/case_pattern.h"

#include <gtest/gtest.h>

namespace tigon::cli {
namespace {

JudgedCase judged(const std::string& sizes, bool failed) {
  return {parse_case("rms_norm/forward/fused/" + sizes), failed};
}

TEST(CasePattern, a_tail_is_named_by_the_width_that_has_none) {
  EXPECT_EQ(case_pattern({judged("f32/T=1,H=1", true), judged("bf16/T=3,H=33", true),
                          judged("f32/T=1,H=8", false), judged("bf16/T=3,H=48", false),
                          judged("f32/T=0,H=33", false),
                          judged("f32/T=3,H=33,prop=row_independence", false)}),
            "H is no multiple of 8 (1, 33; right at 8, 48)");
}

TEST(CasePattern, an_option_a_dtype_inputs_and_a_size) {
  EXPECT_EQ(case_pattern({judged("f32/T=1,H=8,casting=gemma", true),
                          judged("bf16/T=3,H=33,casting=gemma", true),
                          judged("f32/T=1,H=33", false), judged("bf16/T=3,H=8", false)}),
            "casting=gemma");
  EXPECT_EQ(case_pattern({judged("f16/T=1,H=8", true), judged("f16/T=3,H=33", true),
                          judged("f32/T=1,H=33", false), judged("bf16/T=3,H=8", false)}),
            "f16");
  EXPECT_EQ(case_pattern({judged("f32/T=65,H=8", true), judged("f32/T=128,H=8", true),
                          judged("f32/T=64,H=8", false), judged("f32/T=33,H=8", false)}),
            "T > 64 (65, 128; right at 33, 64)");
}

TEST(CasePattern, what_passes_too_is_counted) {
  EXPECT_EQ(case_pattern({judged("f32/T=1,H=8,gap=3", true), judged("f32/T=3,H=8,gap=3", true),
                          judged("f32/T=1,H=8", false), judged("f32/T=3,H=8", false),
                          judged("f32/T=3,H=8,casting=gemma", false),
                          judged("f32/T=5,H=8,gap=3", false)}),
            "a gap, as in 1 of 4 that pass");
}

TEST(CasePattern, nothing_is_said_without_evidence) {
  EXPECT_EQ(case_pattern({}), "");
  EXPECT_EQ(case_pattern({judged("f32/T=1,H=1", true), judged("f32/T=1,H=8", false),
                          judged("f32/T=3,H=8", false)}),
            "");
  EXPECT_EQ(case_pattern({judged("f32/T=1,H=1", true), judged("f32/T=3,H=33", true),
                          judged("f32/T=1,H=1,casting=gemma", false),
                          judged("f32/T=3,H=33,casting=gemma", false)}),
            "");
}

}  // namespace
}  // namespace tigon::cli
