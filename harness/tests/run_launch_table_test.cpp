// SPDX-License-Identifier: Apache-2.0
// Launch tables: who may choose.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/judge/verdict.h"
#include "harness/run/judging/runner.h"
#include "kernels/device/launch_table.h"

namespace tigon {
namespace {

constexpr LaunchShape kShapes[] = {{32, 1, 8}, {128, 2, 4}, {256, 2, 2}, {256, 2, 2, 3}};
size_t shape_of(LaunchTable* table, const char* name, int64_t size) {
  return table->shape(name, size, kShapes, std::size(kShapes), 1, [](size_t i) { return i > 0; });
}

TEST(LaunchTable, without_a_choice_the_usual_shape) {
  LaunchTable table;
  EXPECT_EQ(shape_of(&table, "t", 64), 1u);
  table.choose({"t", 64}, kShapes[3]);
  EXPECT_EQ(shape_of(&table, "t", 64), 3u);
  EXPECT_EQ(shape_of(&table, "t", 65), 1u);
  EXPECT_EQ(shape_of(&table, "u", 64), 1u);
  table.forget({"t", 64});
  EXPECT_EQ(shape_of(&table, "t", 64), 1u);
}

TEST(LaunchTable, a_shape_that_cannot_take_the_row_is_never_taken) {
  LaunchTable table;
  table.choose({"t", 64}, kShapes[0]);
  EXPECT_EQ(shape_of(&table, "t", 64), 1u);
  table.choose({"t", 64}, {256, 2, 2, 4});  // of another commit's table
  EXPECT_EQ(shape_of(&table, "t", 64), 1u);
}

TEST(LaunchTable, says_what_was_asked) {
  LaunchTable table;
  table.listen();
  shape_of(&table, "t", 64);
  const LaunchTable::Question asked = table.heard();
  EXPECT_EQ(asked.key, (LaunchTable::Key{"t", 64}));
  EXPECT_EQ(asked.usual, kShapes[1]);
  EXPECT_EQ(asked.others, (std::vector{kShapes[2], kShapes[3]}));
}

// One case of each kind of table, and the members of a shape that its kernels are compiled in.
struct Kind {
  const char* id;
  std::vector<int LaunchShape::*> searched;
};
const Kind kKinds[] = {
    {"rms_norm/forward/fused/bf16/T=9,H=512", {&LaunchShape::lanes, &LaunchShape::vectors}},
    {"rms_norm/backward/fused/bf16/T=9,H=512", {&LaunchShape::lanes, &LaunchShape::vectors}},
    {"add_rms_norm/backward/fused/bf16/T=9,H=512", {&LaunchShape::stages}},
    {"layer_norm/backward/fused/bf16/T=9,H=512", {&LaunchShape::stages}},
    {"softmax/forward/fused/bf16/T=3,V=4096", {&LaunchShape::lanes, &LaunchShape::cluster}},
    {"softmax/forward/fused/bf16/T=3,V=32768", {&LaunchShape::lanes}},
    {"softmax/forward/fused/bf16/T=3,V=262144", {&LaunchShape::cluster}},
    {"cross_entropy/forward_backward/fused/bf16/T=3,V=32768",
     {&LaunchShape::lanes, &LaunchShape::cluster}},
    {"cross_entropy/forward_backward/fused/bf16/T=3,V=262144", {&LaunchShape::cluster}},
    {"softmax/backward/fused/f32/T=3,V=32768", {&LaunchShape::cluster}},
    {"cross_entropy/forward_backward/fused/bf16/T=3,V=4096",
     {&LaunchShape::lanes, &LaunchShape::cluster}},
    {"cross_entropy/forward/fused/bf16/T=3,V=4096", {&LaunchShape::cluster}},
    {"cross_entropy/backward/fused/bf16/T=3,V=32768", {&LaunchShape::cluster}},
    {"log_prob/forward/fused/bf16/T=3,V=4096", {&LaunchShape::lanes, &LaunchShape::cluster}},
    {"log_prob/backward/fused/bf16/T=3,V=32768", {&LaunchShape::cluster}},
    {"swiglu/forward/fused/bf16/T=3,F=4096", {&LaunchShape::lanes}},
    {"geglu/backward/fused/bf16/T=3,F=4096", {&LaunchShape::lanes}},
    {"rope/forward/fused/bf16/T=5,Q=32,K=8,D=64", {&LaunchShape::lanes}},
};

Verdict verdict_of(const Case& c) {
  bool fatal = false;
  const CheckResult result = run_case(c, "", &fatal);
  EXPECT_EQ(result.verdict, Verdict::kPassed) << case_id(c) << ": " << result.reason;
  return result.verdict;
}

TEST(LaunchTables, every_shape_that_tune_may_take_is_right) {
  for (const Kind& kind : kKinds) {
    const Case c = parse_case(kind.id);
    launch_table().listen();
    verdict_of(c);
    const LaunchTable::Question asked = launch_table().heard();
    EXPECT_GT(asked.others.size(), 0u) << kind.id;
    for (int LaunchShape::*member : kind.searched)
      EXPECT_TRUE(std::any_of(asked.others.begin(), asked.others.end(), [&](const LaunchShape& s) {
        return s.*member != asked.usual.*member;
      })) << kind.id;
    for (const LaunchShape& shape : asked.others) {
      SCOPED_TRACE(testing::Message() << shape.lanes << " lanes x " << shape.vectors << ", "
                                      << shape.stages << " stages, cluster " << shape.cluster);
      launch_table().choose(asked.key, shape);
      verdict_of(c);
      launch_table().forget(asked.key);
    }
  }
}

}  // namespace
}  // namespace tigon
