// SPDX-License-Identifier: Apache-2.0
// What `tigon describe --shapes` says is what launches with rows take.
#include "harness/run/cases/launch_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/measure/call_set.h"

namespace tigon {
namespace {

constexpr int64_t kLongest = 4096;  // that is run here

// What a launch with rows takes.
LaunchTable::Question asked_by(const char* op, const char* pass, int64_t length) {
  Case c;
  c.op = op;
  c.pass = pass;
  c.dtype = DType::kBF16;
  c.axes = {{"T", 3}, {row_axis(*find_op(op)).symbol, length}};
  CallSet set(c);
  set.fill_inputs(c.seed);
  const Implementation& fused = *find_implementation(*find_pass(*find_op(op), pass), "fused");
  const DeviceBuffer scratch(fused.workspace ? fused.workspace(c.dtype, set.bound()) : 0);
  launch_table().listen();
  EXPECT_TRUE(fused.run(c.dtype, set.with_scratch(scratch), nullptr).ok());
  LaunchTable::Question asked = launch_table().heard();
  device_synchronize();
  return asked;
}

TEST(LaunchShapes, are_those_of_launches_with_rows) {
  const std::pair<const char*, const char*> kPasses[] = {
      {"rms_norm", "forward"}, {"add_rms_norm", "backward"},          {"layer_norm", "backward"},
      {"softmax", "forward"},  {"cross_entropy", "forward_backward"}, {"geglu", "forward"}};
  for (const auto& [op, pass] : kPasses) {
    SCOPED_TRACE(std::string(op) + " " + pass);
    const PassShapes shapes =
        launch_shapes(*find_op(op), *find_pass(*find_op(op), pass), DType::kBF16, true);
    ASSERT_FALSE(shapes.ranges.empty());
    int64_t next = 1;
    for (const ShapeRange& r : shapes.ranges) {
      EXPECT_EQ(r.first, next) << "every length has a shape";
      next = r.last + 1;
      const int64_t length = std::min(r.last, kLongest);
      if (r.first > length) continue;
      const LaunchTable::Question asked = asked_by(op, pass, length);
      EXPECT_EQ(asked.key.first, r.table) << length;
      EXPECT_EQ(asked.usual, r.shape) << length;
    }
    EXPECT_TRUE(shapes.ranges.back().is_longest);
  }
}

TEST(LaunchShapes, misaligned_tensors_have_their_own) {
  const OpSpec& op = *find_op("rms_norm");
  const PassShapes shapes = launch_shapes(op, *find_pass(op, "forward"), DType::kBF16, false);
  ASSERT_FALSE(shapes.ranges.empty());
  EXPECT_EQ(shapes.ranges[0].table, "rms_norm.forward.elements");
}

TEST(LaunchShapes, an_op_without_a_table_has_none) {
  const OpSpec& op = *find_op("linear_cross_entropy");
  EXPECT_TRUE(launch_shapes(op, *find_pass(op, "forward"), DType::kBF16, true).ranges.empty());
}

}  // namespace
}  // namespace tigon
