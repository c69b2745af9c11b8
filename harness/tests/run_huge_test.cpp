// The method of large cases, on sizes that a host can take: sampled rows, slices, sums; and rows
// that lie far apart.
#include "harness/run/huge.h"

#include <gtest/gtest.h>

#include "harness/run/arena.h"
#include "harness/run/executor.h"
#include "harness/run/placed.h"
#include "harness/run/tiled_tensor.h"

namespace tigon {
namespace {

// Several tiles, slices and boundaries in small tensors.
HugeLimits small_limits() {
  HugeLimits limits;
  limits.slice_elements = 1024;
  limits.boundary_elements = 2048;
  limits.random_rows = 5;
  return limits;
}

CheckResult huge(const OpSpec& op, const Pass& pass, DType dtype, int64_t rows) {
  CheckResult result;
  result.c.op = op.name;
  result.c.pass = pass.name;
  result.c.impl = "fused";
  result.c.dtype = dtype;
  result.c.inputs = kTiledInputs;
  for (const AxisPlan& a : op.axes) result.c.axes[a.axis.symbol] = a.tiny.back();
  result.c.axes[op.axes.front().axis.symbol] = rows;
  for (const auto& [name, value] : op.huge_options)
    for (const OptionInfo& o : pass.options)
      if (o.name == name) result.c.options[name] = value;
  // Of linear_cross_entropy: 128 rows of 33 logits (f32: 64), a divisor of a slice.
  if (result.c.options.count("logits_bytes")) result.c.options["logits_bytes"] = "10240";
  const Case c = result.c;
  try {
    check_huge(c, small_limits(), &result);
  } catch (const Stop& stop) {
    result.verdict = stop.verdict;
    result.reason = stop.reason;
  }
  return result;
}

TEST(Huge, kernels_pass) {
  for (const OpSpec& op : all_ops())
    for (const Pass& pass : op.passes)
      for (const DType dtype : op.policies) {
        const CheckResult r = huge(op, pass, dtype, 384);
        EXPECT_EQ(r.verdict, Verdict::kPassed) << case_id(r.c) << ": " << r.reason;
        size_t outputs = 0;
        for (const TensorInfo& t : pass.tensors) outputs += t.role != Role::kIn;
        EXPECT_EQ(r.outputs.size(), outputs) << case_id(r.c);
      }
}

TEST(Huge, needs_a_gpu_for_what_is_large) {
  if (this_executor() == "cuda") GTEST_SKIP() << "there is one";
  const OpSpec& op = all_ops().front();
  const CheckResult r = huge(op, op.passes.front(), DType::kF32, int64_t{1} << 28);
  EXPECT_EQ(r.verdict, Verdict::kUnsupported);
  EXPECT_NE(r.reason.find("needs a GPU"), std::string::npos) << r.reason;
}

TEST(TiledTensor, can_make_any_row_again) {
  const OpSpec& op = all_ops().front();
  const TensorInfo& info = op.passes.front().tensors.front();
  Binding binding;
  for (const AxisPlan& a : op.axes) binding[a.axis.symbol] = 5000;
  TiledTensor t(info, DType::kBF16, binding, op.axes.front().axis.symbol);
  ASSERT_TRUE(t.row_wise());
  t.plan({info.name, "normal", {}}, 42, binding);
  t.fill(0);
  EXPECT_EQ(t.download(4999, 1), t.planned(4999, 1));
  EXPECT_NE(t.download(0, 1), t.download(1, 1));
  EXPECT_TRUE(t.guards_hold());
  t.keep_rows({3});
  EXPECT_EQ(t.planned(2, 1), std::vector<std::byte>(10000));
  EXPECT_NE(t.planned(3, 1), std::vector<std::byte>(10000));
}

TEST(FarRows, are_guarded_and_take_little_memory) {
  if (executor_checks()) GTEST_SKIP() << "has red zones of its own";
  constexpr int kGap = 1 << 30;
  ArenaTensor t("x", DType::kF32, {3, 5}, kGap, 1);
  ASSERT_GT((t.ref().shape[0] - 1) * t.ref().stride[0], int64_t{1} << 31);
  std::vector<std::byte> values(15 * 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i);
  t.set_round(0);
  t.upload(values);
  std::optional<std::string> damage;
  EXPECT_EQ(t.download(&damage), values);
  EXPECT_FALSE(damage) << *damage;
  float* last = static_cast<float*>(t.ref().data) + 2 * t.ref().stride[0];
  const float sixth = 1;
  device_upload(last + 5, &sixth, sizeof sixth);
  t.download(&damage);
  ASSERT_TRUE(damage);
  EXPECT_NE(damage->find("0 bytes behind the end of x"), std::string::npos) << *damage;
}

}  // namespace
}  // namespace tigon
