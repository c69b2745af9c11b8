// SPDX-License-Identifier: Apache-2.0
// Measured calls beside the oracle: right ones pass at any size, what is wrong only at a large size
// fails.
#include "harness/measure/verify.h"

#include <gtest/gtest.h>

#include <random>

#include "harness/measure/measure_cell.h"

namespace tigon {
namespace {

constexpr int64_t kElements = int64_t{1} << 15;  // few: all sizes here are sampled

Contender contender_of(const Case& c, const CallSet& set, const Implementation& implementation) {
  const size_t bytes =
      implementation.workspace ? implementation.workspace(c.dtype, set.bound()) : 0;
  return {c, &implementation, DeviceBuffer(bytes)};
}

// Our kernel, which then changes the output's elements from the `first` on: a fault that no small
// size shows.
Implementation wrong_beyond(const Case& c, const std::string& output, int64_t first) {
  const Implementation right = *find_implementation(*find_pass(*find_op(c.op), c.pass), "fused");
  Implementation wrong = right;
  wrong.run = [=](DType dtype, const Bound& bound, Stream stream) {
    const Status status = right.run(dtype, bound, stream);
    const TensorRef& ref = bound.tensors.at(output);
    int64_t elements = 1;
    for (const int64_t size : ref.shape) elements *= size;
    for (int64_t i = first; i < elements; ++i)
      if (ref.dtype == DType::kBF16) {
        auto& element = static_cast<bf16*>(ref.data)[i];
        element = bf16(1.05F * static_cast<float>(element));
      } else {
        static_cast<float*>(ref.data)[i] *= 1.05F;
      }
    return status;
  };
  return wrong;
}

Verified verified(const std::string& id, const std::string& output = "", int64_t first = 0) {
  const Case c = parse_case(id);
  CallSet set(c);
  const Verification verification(c, set, kElements);
  const Pass& pass = *find_pass(*find_op(c.op), c.pass);
  const Implementation planted =
      output.empty() ? *find_implementation(pass, c.impl) : wrong_beyond(c, output, first);
  return verification.of(contender_of(c, set, planted), set);
}

// A size of the op's host sweep or up to seven more, drawn.
int64_t draw(const AxisPlan& plan, std::mt19937_64* random) {
  const int64_t size = plan.host_sweep[(*random)() % plan.host_sweep.size()];
  const bool is_head = plan.model_size == ModelSize::kRotary;  // even, and alike in all heads
  return is_head ? size : size + static_cast<int64_t>((*random)() % 8);
}

TEST(Verify, right_kernels_pass_at_sizes_that_are_drawn_and_nothing_is_left_out) {
  if (default_executor() == "cuda") GTEST_SKIP() << "would use the GPU before others fork";
  std::mt19937_64 random(2026);
  for (const OpSpec& op : all_ops())
    for (const Pass& pass : op.passes)
      for (const DType dtype : op.policies) {
        Case c;
        c.op = op.name;
        c.pass = pass.name;
        c.impl = "fused";
        c.dtype = dtype;
        c.inputs = op.inputs.front().name;
        for (const AxisPlan& plan : op.axes) c.axes[plan.axis.symbol] = draw(plan, &random);
        c.seed = random() >> 12;
        const Verified result = verified(case_id(c));
        EXPECT_EQ(result.verdict, Verdict::kPassed) << case_id(c) << ": " << result.reason;
        EXPECT_EQ(result.not_compared, "") << case_id(c);
        for (const TensorInfo& t : pass.tensors) {
          if (!t.is_output() || is_left_out(t, c.options)) continue;
          EXPECT_NE(result.by.find(t.name), std::string::npos) << case_id(c) << result.by;
        }
      }
}

TEST(Verify, right_kernels_pass_with_options_and_at_the_smallest_sizes) {
  if (default_executor() == "cuda") GTEST_SKIP() << "would use the GPU before others fork";
  for (const char* id :
       {"cross_entropy/forward/fused/bf16/T=170,V=300,reduction=none",
        "cross_entropy/forward_backward/fused/f32/T=170,V=300,class_weight=given,z_loss=0.01",
        "cross_entropy/forward_backward/fused/f32/T=170,V=300,normaliser=given,softcap=5",
        "cross_entropy/forward/fused/f16/T=170,V=300,ignore_index=0,label_smoothing=0.1",
        "linear_cross_entropy/forward_backward/fused/bf16/T=170,H=40,V=300,dw=absent,"
        "dw_accum=given",
        "linear_cross_entropy/forward_backward/fused/f32/T=170,H=40,V=300,bias=given,"
        "dbias=given,split=vocabulary,logits_bytes=3200",
        "rms_norm/backward/fused/bf16/T=130,H=40,dw=absent",
        "rms_norm/forward/fused/bf16/T=130,H=40,casting=gemma,w=absent",
        "layer_norm/backward/fused/f32/T=1,H=1", "rms_norm/forward/fused/bf16/T=0,H=8",
        "softmax/forward/fused/bf16/T=130,V=1",
        "linear_cross_entropy/forward/fused/f32/T=1,H=1,V=1",
        "log_prob/forward/fused/bf16/T=130,V=50"}) {
    const Verified result = verified(id);
    EXPECT_EQ(result.verdict, Verdict::kPassed) << id << ": " << result.reason;
    EXPECT_EQ(result.not_compared, "") << id;
  }
}

TEST(Verify, what_is_wrong_only_at_a_large_size_fails) {
  if (default_executor() == "cuda") GTEST_SKIP() << "writes where the executor's memory is";
  const auto fails = [](const std::string& id, const std::string& output, int64_t first) {
    EXPECT_EQ(verified(id).verdict, Verdict::kPassed) << id;
    const Verified wrong = verified(id, output, first);
    EXPECT_EQ(wrong.verdict, Verdict::kIncorrectNumerical) << id << ": " << output;
    EXPECT_EQ(wrong.reason.rfind(output, 0), 0U) << wrong.reason;
  };
  // A last row, half of the rows, all of a sum over rows.
  fails("rms_norm/forward/fused/bf16/T=1025,H=256", "y", 1024 * 256);
  fails("rms_norm/forward/fused/bf16/T=1025,H=256", "rstd", 1024);
  fails("layer_norm/backward/fused/bf16/T=2000,H=128", "dx", 1000 * 128);
  fails("layer_norm/backward/fused/bf16/T=2000,H=128", "db", 0);
  fails("rms_norm/backward/fused/bf16/T=2000,H=512", "dw", 511);
  fails("cross_entropy/forward/fused/bf16/T=400,V=1000", "loss", 0);
  fails("cross_entropy/forward/fused/bf16/T=400,V=1000", "lse", 399);
  fails("cross_entropy/backward/fused/bf16/T=400,V=1000", "logits", 200 * 1000);
  fails("linear_cross_entropy/forward/fused/bf16/T=300,H=64,V=1000", "loss", 0);
  fails("linear_cross_entropy/forward_backward/fused/bf16/T=300,H=64,V=1000", "dx", 200 * 64);
  fails("linear_cross_entropy/forward_backward/fused/bf16/T=300,H=64,V=1000", "dw", 900 * 64);
  fails("softmax/forward/fused/bf16/T=400,V=1000", "y", 399 * 1000 + 999);
}

TEST(Verify, says_which_row_of_the_case_is_wrong) {
  if (default_executor() == "cuda") GTEST_SKIP() << "writes where the executor's memory is";
  const Verified wrong = verified("rms_norm/forward/fused/bf16/T=1025,H=256", "y", 1024 * 256);
  EXPECT_NE(wrong.reason.find("the worst is row 1024"), std::string::npos) << wrong.reason;
}

TEST(Verify, rows_that_a_sample_would_not_have_are_said_to_be_left_out) {
  if (default_executor() == "cuda") GTEST_SKIP() << "would use the GPU before others fork";
  const Verified few = verified("rope/forward/fused/bf16/T=9,Q=2,K=1,D=64,positions=given");
  EXPECT_EQ(few.not_compared, "") << few.by;
  const Verified many = verified("rope/forward/fused/bf16/T=500,Q=2,K=1,D=64,positions=given");
  EXPECT_EQ(many.not_compared,
            "q, k: positions chooses among all 500 rows, which are too many for the oracle");
}

TEST(Verify, a_wrong_measurement_fails_with_exit_code_1) {
  if (default_executor() == "cuda") GTEST_SKIP() << "writes where the executor's memory is";
  const Case c = parse_case("swiglu/forward/fused/bf16/T=200,F=300");
  CallSet set(c);
  const Verification verification(c, set, kElements);
  const Implementation wrong = wrong_beyond(c, "y", 199 * 300);
  Timing timing{.impl = "fused", .basis = "wall", .samples = {1e-3}};
  verification.judge(contender_of(c, set, wrong), set, {&timing});
  const Json fields = bench_fields(c, timing, 1, {});
  const auto verdict = parse_verdict(fields["verdict"].get<std::string>());
  ASSERT_TRUE(verdict);
  EXPECT_EQ(exit_code_of(*verdict), kExitIncorrect) << fields["verdict"];
  EXPECT_EQ(fields["verified_by"].get<std::string>().rfind("the oracle: y in ", 0), 0U);
}

TEST(Verify, another_result_than_the_timed_call_had_is_not_deterministic) {
  if (default_executor() == "cuda") GTEST_SKIP() << "would use the GPU before others fork";
  const Case c = parse_case("swiglu/forward/fused/bf16/T=20,F=30");
  CallSet set(c);
  const Verification verification(c, set, kElements);
  Timing timing{.impl = "fused", .basis = "wall", .samples = {1e-3}, .fingerprints = {1}};
  verification.judge(
      contender_of(c, set, *find_implementation(find_op("swiglu")->passes[0], "fused")), set,
      {&timing});
  EXPECT_EQ(timing.verdict, name_of(Verdict::kNondeterministic));
}

}  // namespace
}  // namespace tigon
