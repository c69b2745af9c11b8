// SPDX-License-Identifier: Apache-2.0
// Random cases are cases of the contract, the same every time, and spread over it.
#include "harness/run/judging/soak.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/run/cases/soak_cases.h"

namespace tigon {
namespace {

TEST(Soak, draws_cases_of_the_contract) {
  for (const OpSpec& op : all_ops()) {
    std::set<std::string> passes, inputs, shapes;
    SoakRequest request;
    request.op = op.name;
    request.dtype = DType::kBF16;
    request.most_elements = 5000;
    for (const Case& c : soak_cases(request, 1, 300)) {
      const std::string id = case_id(c);
      EXPECT_EQ(case_id(parse_case(id)), id);
      EXPECT_NE(c.impl, "naive") << id;
      int64_t elements = 1;
      for (const auto& [axis, size] : c.axes) elements *= size;
      EXPECT_LE(elements, 5000) << id;
      passes.insert(c.pass);
      inputs.insert(c.inputs);
      shapes.insert(id.substr(0, id.find("inputs=")));
    }
    EXPECT_EQ(passes.size(), op.passes.size()) << op.name;
    EXPECT_EQ(inputs.size(), op.inputs.size()) << op.name;
    EXPECT_GT(shapes.size(), 100u) << op.name;
  }
}

TEST(Soak, a_seed_stands_for_a_case) {
  SoakRequest request;
  request.op = all_ops().front().name;
  std::set<std::string> all, parts;
  for (const Case& c : soak_cases(request, 5, 20)) all.insert(case_id(c));
  for (uint64_t first : {5, 15})
    for (const Case& c : soak_cases(request, first, 10)) parts.insert(case_id(c));
  EXPECT_EQ(all, parts);
  EXPECT_EQ(all.size(), 20u);
}

TEST(Soak, takes_what_was_asked_for) {
  SoakRequest request;
  request.op = all_ops().front().name;
  request.choice.passes = {"forward"};
  request.choice.implementations = {"naive"};
  for (const Case& c : soak_cases(request, 0, 20)) {
    EXPECT_EQ(c.pass, "forward");
    EXPECT_EQ(c.impl, "naive");
  }
  request.choice.passes = {"sideways"};
  EXPECT_THROW(soak_cases(request, 0, 1), UsageError);
}

TEST(Soak, refuses_sizes_that_leave_no_room_for_the_others) {
  SoakRequest request;
  request.op = "rms_norm";
  request.choice.axes = {{"H", {16384}}};
  request.most_elements = 16383;
  EXPECT_THROW(soak_cases(request, 1, 1), UsageError);
  request.most_elements = 16384;
  EXPECT_EQ(soak_cases(request, 1, 1).front().axes.at("H"), 16384);
}

TEST(VerdictDiff, counts_verdicts_that_change) {
  VerdictDiff diff;
  CheckResult r;
  r.c.op = "o";
  r.executor = "fast";
  r.verdict = Verdict::kPassed;
  diff.add(r);
  diff.add(r);
  EXPECT_TRUE(diff.differing().empty());
  r.executor = "checked";  // another case
  r.verdict = Verdict::kTimeout;
  diff.add(r);
  EXPECT_TRUE(diff.differing().empty());
  EXPECT_EQ(diff.cases(), 2u);
  r.verdict = Verdict::kPassed;
  diff.add(r);
  ASSERT_EQ(diff.differing().size(), 1u);
  EXPECT_NE(diff.differing()[0].find("timeout, then passed"), std::string::npos);
}

}  // namespace
}  // namespace tigon
