// SPDX-License-Identifier: Apache-2.0
// What cases met of the kernels, and whether the plan meets all of them.
#include "harness/run/judging/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/run/cases/launch_shapes.h"
#include "harness/run/executor.h"
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

TEST(Coverage, counts_kernels_and_pairs) {
  Coverage coverage({{"k<Policy<bf16, float>, 8>", "kernels/a.cu"},
                     {"k<Policy<f16, float>, 8>", "kernels/a.cu"},
                     {"k<Policy<f16, float>, 1>", "kernels/a.cu"},
                     {"other<float>", "kernels/b.cu"}});
  const std::string id = "rms_norm/forward/fused/bf16/T=1,H=8";
  coverage.add(result_of(id, {"k<Policy<bf16, float>, 8>", "of_no_kernel_file<float>"}));
  coverage.add(result_of(id + ",inputs=offset,gap=3", {"k<Policy<f16, float>, 1>"}));
  coverage.add(result_of("rms_norm/forward/naive/bf16/T=1,H=8", {"k<Policy<f16, float>, 8>"}));
  const auto rows = coverage.rows();
  ASSERT_EQ(rows.size(), 1u) << "a file of which nothing was launched has no row";
  const Coverage::Row& row = rows.front();
  EXPECT_EQ(row.file, "kernels/a.cu");
  EXPECT_EQ(row.kernels, 3u);
  EXPECT_EQ(row.missing, std::vector<std::string>{"k<Policy<f16, float>, 8>"});
  EXPECT_EQ(row.paths, 2u) << "whatever the element type";
  // Each path with inputs=normal, inputs=offset and gap.
  EXPECT_EQ(row.pairs, 6u);
  EXPECT_EQ(row.met, 3u);
  const std::string open = "rms_norm forward k<*, 8>: gap";
  EXPECT_NE(std::find(row.open.begin(), row.open.end(), open), row.open.end());
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

TEST(Plan, has_rows_of_every_launch_shape) {
  for (const OpSpec& op : all_ops()) {
    CheckRequest request;
    request.ops = {op.name};
    request.implementations = {"fused"};
    const std::vector<Case> cases = select_cases(request);
    for (const Pass& pass : op.passes)
      for (const DType dtype : op.policies)
        for (const ShapeRange& range : launch_shapes(op, pass, dtype, true).ranges)
          EXPECT_TRUE(has_rows_of(cases, pass, dtype, row_axis(op).symbol, range))
              << op.name << " " << pass.name << " " << range.table << " " << range.last;
  }
}

}  // namespace
}  // namespace tigon
