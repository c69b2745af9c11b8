// SPDX-License-Identifier: Apache-2.0
// What cases met of the kernels, and whether the plan meets all of them.
#include "harness/run/judging/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "harness/run/cases/launch_shapes.h"
#include "harness/run/cases/plan.h"
#include "harness/run/executor.h"
#include "harness/run/judging/launches.h"
#include "harness/run/judging/runner.h"

namespace tigon {
namespace {

CheckResult result_of(const std::string& id, std::vector<std::string> kernels) {
  CheckResult r;
  r.c = parse_case(id);
  r.verdict = Verdict::kPassed;
  r.kernels = std::move(kernels);
  return r;
}

// Launchers of a pass with one path for tensors that are aligned, one for others, and one for a
// launch table.
std::vector<std::string> launches(const Case& c) {
  const std::string type = c.dtype == DType::kF32 ? "float" : "bf16";
  const std::string width = c.dtype == DType::kF32 ? "4" : "8";
  if (c.launch != 0) return {"k<" + type + ", " + width + ", 512>"};
  const bool aligned = c.shift == 0 && c.skew == 0 && c.gap % 16 == 0;
  return {"k<" + type + ", " + (aligned ? width : "1") + ", 128>"};
}

const std::map<std::string, std::string> kKernels = {{"k<float, 4, 128>", "kernels/a.cu"},
                                                     {"k<bf16, 8, 128>", "kernels/a.cu"},
                                                     {"k<bf16, 1, 128>", "kernels/a.cu"},
                                                     {"k<bf16, 8, 512>", "kernels/a.cu"},
                                                     {"other<float>", "kernels/b.cu"}};

bool has(const std::vector<std::string>& pairs, const std::string& pair) {
  return std::find(pairs.begin(), pairs.end(), pair) != pairs.end();
}

TEST(Coverage, a_path_is_a_kernel_whatever_the_element_type) {
  EXPECT_EQ(path_of("k<Policy<bf16, float>, 8, 256>"), "k<*, vectors, 256>");
  EXPECT_EQ(path_of("k<Policy<float, float>, 4, 256>"), "k<*, vectors, 256>");
  EXPECT_EQ(path_of("k<Policy<f16, float>, 1, 8>"), "k<*, 1, 8>");
  EXPECT_EQ(path_of("s<P<(A)0, false>, Args<Policy<bf16, float> >, 8, 128>"),
            "s<P<(A)0, false>, Args<*>, vectors, 128>");
}

TEST(Coverage, counts_kernels_and_pairs) {
  Coverage coverage(kKernels, launches);
  const std::string id = "rms_norm/forward/fused/bf16/T=1,H=8";
  coverage.add(result_of(id, {"k<bf16, 8, 128>", "of_no_kernel_file<float>"}));
  coverage.add(result_of(id + ",inputs=offset,skew=1", {"k<bf16, 1, 128>"}));
  coverage.add(result_of("rms_norm/forward/naive/bf16/T=1,H=8", {"k<float, 4, 128>"}));
  const auto rows = coverage.rows();
  ASSERT_EQ(rows.size(), 1u) << "a file of which nothing was launched has no row";
  const Coverage::Row& row = rows.front();
  EXPECT_EQ(row.file, "kernels/a.cu");
  EXPECT_EQ(row.kernels, 4u);
  EXPECT_EQ(row.missing, (std::vector<std::string>{"k<bf16, 8, 512>", "k<float, 4, 128>"}));
  EXPECT_EQ(row.paths, 3u);
  EXPECT_EQ(row.met, 3u) << "inputs=normal of one path, inputs=offset and skew of the other";
  EXPECT_EQ(row.pairs, row.met + row.open.size());
  EXPECT_TRUE(has(row.open, "rms_norm forward k<*, vectors, 128>: inputs=offset"));
  EXPECT_TRUE(has(row.open, "rms_norm forward k<*, 1, 128>: casting=gemma"));
}

// What a launcher never does is not asked for, and is said with the rule.
TEST(Coverage, rules_out_what_no_launch_can_meet) {
  Coverage coverage(kKernels, launches);
  const std::string id = "rms_norm/forward/fused/bf16/T=1,H=8";
  coverage.add(result_of(id, {"k<bf16, 8, 128>"}));
  coverage.add(result_of(id + ",launch=1", {"k<bf16, 8, 512>"}));
  const Coverage::Row row = coverage.rows().front();
  const auto ruled_out = [&](const std::string& rule, const std::string& pair) {
    const auto found = row.ruled_out.find(rule);
    return found != row.ruled_out.end() && has(found->second, "rms_norm forward " + pair);
  };
  const std::string no_launch = "no launch with it takes the path",
                    by_table = "only a launch table chooses the path";
  EXPECT_TRUE(ruled_out(no_launch, "k<*, vectors, 128>: skew"));
  EXPECT_TRUE(ruled_out(by_table, "k<*, vectors, 512>: inputs=offset"));
  EXPECT_TRUE(has(row.open, "rms_norm forward k<*, vectors, 128>: gap")) << "a whole vector apart";
  EXPECT_TRUE(has(row.open, "rms_norm forward k<*, vectors, 512>: casting=gemma"));
}

TEST(Coverage, a_launch_that_is_asked_for_is_the_one_that_runs) {
  if (on_gpu()) return;  // nothing is known there
  for (const char* id :
       {"rms_norm/backward/fused/f32/T=3,H=1024", "swiglu/forward/fused/bf16/T=3,F=33,skew=1",
        "cross_entropy/forward_backward/fused/f16/T=2,V=50,softcap=5,gap=3",
        "linear_cross_entropy/forward_backward/fused/bf16/T=5,H=8,V=33,"
        "logits_bytes=200,split=vocabulary",
        "rms_norm/backward/fused/f32/T=2,H=1024,launch=1"}) {
    bool fatal = false;
    const CheckResult r = run_case(parse_case(id), "", &fatal);
    ASSERT_EQ(r.verdict, Verdict::kPassed) << r.reason;
    EXPECT_EQ(launches_of(parse_case(id)), r.kernels) << id;
  }
}

TEST(Coverage, a_case_names_the_kernels_that_it_launched) {
  bool fatal = false;
  const CheckResult r = run_case(parse_case("rms_norm/forward/fused/f32/T=2,H=8"), "", &fatal);
  ASSERT_EQ(r.verdict, Verdict::kPassed) << r.reason;
  if (on_gpu()) return;  // nothing is known there
  ASSERT_EQ(r.kernels.size(), 1u);
  EXPECT_EQ(r.kernels.front().find("rms_norm::forward_kernel<"), 0u) << r.kernels.front();
  EXPECT_EQ(executor_kernels().at(r.kernels.front()), "kernels/rms_norm/rms_norm.cu");
}

TEST(Coverage, a_case_takes_the_launch_shape_that_it_names) {
  const std::string id = "rms_norm/backward/fused/f32/T=2,H=1024";
  const auto asked = launch_question(parse_case(id));
  ASSERT_TRUE(asked.has_value());
  ASSERT_FALSE(asked->others.empty());
  const auto kernels_of = [](const std::string& case_id) {
    bool fatal = false;
    const CheckResult r = run_case(parse_case(case_id), "", &fatal);
    EXPECT_EQ(r.verdict, Verdict::kPassed) << r.reason;
    return r.kernels;
  };
  const auto usual = kernels_of(id), chosen = kernels_of(id + ",launch=1");
  if (!on_gpu()) {
    EXPECT_NE(usual, chosen);
  }
  EXPECT_EQ(kernels_of(id), usual) << "the choice ends with its case";
  bool fatal = false;
  const CheckResult none = run_case(parse_case(id + ",launch=99"), "", &fatal);
  EXPECT_EQ(none.verdict, Verdict::kUnsupported);
  EXPECT_NE(none.reason.find("launch=99: this launch can take"), std::string::npos) << none.reason;
}

// Tensors that are each off by another number of elements are not read in vectors.
TEST(Coverage, a_skew_takes_another_path) {
  if (on_gpu()) GTEST_SKIP() << "which kernels a GPU launched is not known";
  bool fatal = false;
  const std::string id = "softmax/forward/fused/f32/T=2,V=64";
  const auto straight = run_case(parse_case(id), "", &fatal);
  const auto skewed = run_case(parse_case(id + ",skew=1"), "", &fatal);
  EXPECT_EQ(skewed.verdict, Verdict::kPassed) << skewed.reason;
  EXPECT_NE(straight.kernels, skewed.kernels);
}

bool has_rows_of(const std::vector<Case>& cases, const Pass& pass, DType dtype,
                 const std::string& axis, const ShapeRange& range) {
  return std::any_of(cases.begin(), cases.end(), [&](const Case& c) {
    return c.pass == pass.name && c.dtype == dtype && c.axes.at(axis) >= range.first &&
           c.axes.at(axis) <= range.last;
  });
}

// Launch shapes of rows of up to 64 KiB in any element type.
std::vector<ShapeRange> short_shapes(const OpSpec& op, const Pass& pass) {
  std::vector<ShapeRange> all;
  for (const DType dtype : op.policies)
    for (const bool aligned : {true, false})
      for (const ShapeRange& range : launch_shapes(op, pass, dtype, aligned).ranges)
        if (range.last * static_cast<int64_t>(size_of(dtype)) <= 65536) all.push_back(range);
  return all;
}

// For any number of blocks per row it is one kernel.
bool takes(const Case& c, const ShapeRange& range) {
  auto asked = launch_question(c);
  if (!asked) return false;
  asked->usual.cluster = range.shape.cluster;
  return asked->key.first == range.table && asked->usual == range.shape;
}

// By op. On a GPU the plan is a child's work, and who has asked the device has no such child: so it
// is asked when all are chosen.
std::map<std::string, std::vector<Case>> fused_cases(Tier tier) {
  std::map<std::string, std::vector<Case>> chosen;
  CheckRequest request;
  request.implementations = {"fused"};
  request.tier = tier;
  for (Case& c : select_cases(request)) chosen[c.op].push_back(std::move(c));
  return chosen;
}

TEST(Plan, has_rows_of_every_launch_shape) {
  auto chosen = fused_cases(Tier::kCheck);
  for (const OpSpec& op : all_ops()) {
    const std::vector<Case>& cases = chosen[op.name];
    for (const Pass& pass : op.passes)
      for (const DType dtype : op.policies)
        for (const ShapeRange& range : launch_shapes(op, pass, dtype, true).ranges)
          EXPECT_TRUE(has_rows_of(cases, pass, dtype, row_axis(op).symbol, range))
              << op.name << " " << pass.name << " " << range.table << " " << range.last;
  }
}

// --quick meets each shape in one element type.
TEST(Plan, quick_takes_every_launch_shape_of_short_rows) {
  auto chosen = fused_cases(Tier::kTiny);
  for (const OpSpec& op : all_ops()) {
    const std::vector<Case>& cases = chosen[op.name];
    for (const Pass& pass : op.passes)
      for (const ShapeRange& range : short_shapes(op, pass))
        EXPECT_TRUE(
            std::any_of(cases.begin(), cases.end(),
                        [&](const Case& c) { return c.pass == pass.name && takes(c, range); }))
            << op.name << " " << pass.name << " " << range.table << ": " << range.shape.lanes
            << " lanes, " << range.shape.vectors << " vectors";
  }
}

TEST(Plan, every_axis_is_once_longer_than_16_bits_and_never_when_it_must_be_quick) {
  for (const Tier tier : {Tier::kTiny, Tier::kCheck}) {
    auto chosen = fused_cases(tier);
    for (const OpSpec& op : all_ops()) {
      const std::vector<Case>& cases = chosen[op.name];
      for (const AxisPlan& a : op.axes)
        EXPECT_EQ(std::any_of(cases.begin(), cases.end(),
                              [&](const Case& c) { return c.axes.at(a.axis.symbol) == kLongAxis; }),
                  tier == Tier::kCheck)
            << op.name << " " << a.axis.symbol;
    }
  }
}

}  // namespace
}  // namespace tigon
