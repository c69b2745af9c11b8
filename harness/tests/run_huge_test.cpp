// SPDX-License-Identifier: Apache-2.0
// The method of large cases, on sizes that a host can take: sampled rows, slices and sums.
#include "harness/run/judging/huge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "harness/run/executor.h"
#include "harness/run/memory/stop.h"
#include "harness/run/memory/tiled_tensor.h"
#include "harness/spec/registry.h"

namespace tigon {
namespace {

constexpr int64_t kRows = 384;

// Several tiles, slices and boundaries in small tensors.
HugeLimits small_limits() {
  HugeLimits limits;
  limits.slice_elements = 1024;
  limits.boundary_elements = 2048;
  limits.random_rows = 5;
  return limits;
}

CheckResult huge(const OpSpec& op, const Pass& pass, DType dtype, int64_t rows,
                 const std::string& implementation = "fused") {
  CheckResult result;
  result.c.op = op.name;
  result.c.pass = pass.name;
  result.c.impl = implementation;
  result.c.dtype = dtype;
  result.c.inputs = kTiledInputs;
  for (const AxisPlan& a : op.axes) result.c.axes[a.axis.symbol] = a.tiny.back();
  result.c.axes[op.axes.front().axis.symbol] = rows;
  for (const auto& [name, value] : op.huge_options)
    for (const OptionInfo& o : pass.options)
      if (o.name == name) result.c.options[name] = value;
  // Chunks of linear_cross_entropy: 128 rows of 33 logits (f32: 64), a divisor of a slice.
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
        const CheckResult r = huge(op, pass, dtype, kRows);
        EXPECT_EQ(r.verdict, Verdict::kPassed) << case_id(r.c) << ": " << r.reason;
        size_t outputs = 0;
        for (const TensorInfo& t : pass.tensors)
          outputs += t.role != Role::kIn && !is_left_out(t, r.c.options);
        EXPECT_EQ(r.outputs.size(), outputs) << case_id(r.c);
      }
}

// An implementation of rms_norm for the length of a test; others count what the contracts hold.
class Added {
 public:
  Added(const char* pass, Implementation implementation) : pass_(pass), name_(implementation.name) {
    add_implementation("rms_norm", pass, std::move(implementation));
  }
  ~Added() { const_cast<Pass*>(find_pass(op(), pass_))->implementations.pop_back(); }
  Added(const Added&) = delete;
  Added& operator=(const Added&) = delete;

  CheckResult result() const {
    return huge(op(), *find_pass(op(), pass_), DType::kF32, kRows, name_);
  }

 private:
  static const OpSpec& op() { return *find_op("rms_norm"); }
  const char* pass_;
  std::string name_;
};

using Spoil = std::function<void(const Bound&)>;

// The fused kernel, with `spoil` done to its outputs where it is called on all rows.
Implementation spoilt(const char* pass, Spoil spoil) {
  Implementation made = *find_implementation(*find_pass(*find_op("rms_norm"), pass), "fused");
  made.name = "spoilt";
  made.run = [run = made.run, spoil](DType dtype, const Bound& bound, Stream stream) {
    const Status status = run(dtype, bound, stream);
    if (status.ok() && bound.tensors.at("x").shape[0] == kRows) spoil(bound);
    return status;
  };
  return made;
}

float* element(const Bound& bound, const char* tensor, int64_t i) {
  return static_cast<float*>(bound.tensors.at(tensor).data) + i;
}

TEST(Huge, sampled_rows_meet_the_oracle) {
  if (this_executor() == "cuda") GTEST_SKIP() << "spoils host memory";
  const Added added("forward", spoilt("forward", [](const Bound& b) {
                      *element(b, "y", kRows * b.tensors.at("y").shape[1] - 1) += 1;
                    }));
  const CheckResult r = added.result();
  EXPECT_EQ(r.verdict, Verdict::kIncorrectNumerical);
  EXPECT_NE(r.reason.find("the worst is row 383 of 384"), std::string::npos) << r.reason;
}

TEST(Huge, rows_that_are_not_sampled_meet_a_sliced_launch) {
  if (this_executor() == "cuda") GTEST_SKIP() << "spoils host memory";
  const Added added("forward", spoilt("forward", [](const Bound& b) {
                      float* y = element(b, "y", 300 * b.tensors.at("y").shape[1] + 5);
                      *y = std::nextafter(*y, 0.0f);  // far below every budget
                    }));
  const CheckResult r = added.result();
  EXPECT_EQ(r.verdict, Verdict::kIncorrectNumerical);
  EXPECT_NE(r.reason.find("y: row 300 of 384 differs at element 5 from a launch"),
            std::string::npos)
      << r.reason;
}

TEST(Huge, sums_of_rows_meet_the_oracle) {
  if (this_executor() == "cuda") GTEST_SKIP() << "spoils host memory";
  const Added forward("forward", spoilt("forward", [](const Bound&) {}));  // makes rstd
  const Added added("backward",
                    spoilt("backward", [](const Bound& b) { *element(b, "dw", 3) += 1; }));
  const CheckResult r = added.result();
  EXPECT_EQ(r.verdict, Verdict::kIncorrectNumerical);
  EXPECT_EQ(r.reason.rfind("dw[3]: ", 0), 0u) << r.reason;
}

TEST(Huge, memory_around_tensors_is_guarded) {
  if (this_executor() == "cuda") GTEST_SKIP() << "spoils host memory";
  const Added added("forward", spoilt("forward", [](const Bound& b) {
                      *element(b, "y", kRows * b.tensors.at("y").shape[1]) = 0;
                    }));
  const CheckResult r = added.result();
  EXPECT_EQ(r.verdict, Verdict::kOutOfBoundsWrite);
  EXPECT_NE(r.reason.find("outside of y"), std::string::npos) << r.reason;
}

TEST(Huge, inputs_stay_as_they_are) {
  if (this_executor() == "cuda") GTEST_SKIP() << "spoils host memory";
  const Added added("forward", spoilt("forward", [](const Bound& b) { *element(b, "x", 0) += 1; }));
  const CheckResult r = added.result();
  EXPECT_EQ(r.verdict, Verdict::kInputModified);
  EXPECT_NE(r.reason.find("changed input x in row 0"), std::string::npos) << r.reason;
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
  t.fill();
  EXPECT_EQ(t.download(4999, 1), t.planned(4999, 1));
  EXPECT_NE(t.download(0, 1), t.download(1, 1));
  EXPECT_TRUE(t.guards_hold());
  t.zero_rows_except({3});
  EXPECT_EQ(t.planned(2, 1), std::vector<std::byte>(10000));
  EXPECT_NE(t.planned(3, 1), std::vector<std::byte>(10000));
}

}  // namespace
}  // namespace tigon
