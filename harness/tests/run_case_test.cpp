// SPDX-License-Identifier: Apache-2.0
// Case ids, selection, and what the contracts promise to the harness.
#include "harness/run/cases/case.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/run/check.h"
#include "harness/run/judging/runner.h"

namespace tigon {
namespace {

std::string error_of(const std::string& id) {
  try {
    parse_case(id);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

TEST(Case, id_parses_back) {
  const std::string id =
      "rms_norm/forward/fused/bf16/T=7,H=127,casting=gemma,offset=1,inputs=small_rows,seed=43,"
      "shift=1,gap=3";
  const Case c = parse_case(id);
  EXPECT_EQ(c.op, "rms_norm");
  EXPECT_EQ(c.dtype, DType::kBF16);
  EXPECT_EQ(c.axes.at("H"), 127);
  EXPECT_EQ(c.options.at("casting"), "gemma");
  EXPECT_EQ(c.inputs, "small_rows");
  EXPECT_EQ(c.seed, 43u);
  EXPECT_EQ(c.shift, 1);
  EXPECT_EQ(c.gap, 3);
  EXPECT_EQ(case_id(c), id);
}

TEST(Case, order_of_keys_is_free_and_defaults_may_be_left_out) {
  const Case c = parse_case("rope/forward/fused/f32/D=8,K=1,Q=2,T=3");
  EXPECT_EQ(case_id(c), "rope/forward/fused/f32/T=3,Q=2,K=1,D=8,inputs=normal,seed=42");
}

TEST(Case, every_selected_id_parses_back_and_is_unique) {
  std::set<std::string> ids, keys;
  for (const Case& c : select_cases({})) {
    const std::string id = case_id(c);
    EXPECT_EQ(case_id(parse_case(id)), id);
    EXPECT_TRUE(ids.insert(id).second) << id;
    EXPECT_TRUE(keys.insert(case_key(c)).second) << id;
  }
  EXPECT_GT(ids.size(), 1000u);
}

TEST(Case, a_wrong_id_says_what_is_wrong_and_what_would_be_right) {
  EXPECT_NE(error_of("nonsense").find("op/pass/impl/dtype"), std::string::npos);
  EXPECT_NE(error_of("norm/forward/fused/f32/T=1").find("known: rms_norm"), std::string::npos);
  EXPECT_NE(error_of("rope/sideways/fused/f32/T=1").find("known: forward"), std::string::npos);
  EXPECT_NE(error_of("rope/forward/magic/f32/T=1").find("known: fused"), std::string::npos);
  EXPECT_NE(error_of("rope/forward/fused/f8/T=1").find("no dtype 'f8'"), std::string::npos);
  EXPECT_NE(error_of("swiglu/forward/fused/f32/T=1").find("no value for axis F"),
            std::string::npos);
  EXPECT_NE(error_of("swiglu/forward/fused/f32/T=-1,F=2").find("'T=-1': not an integer"),
            std::string::npos);
  EXPECT_NE(error_of("swiglu/forward/fused/f32/T=1,F=2,Z=3").find("'Z': neither an axis"),
            std::string::npos);
  EXPECT_NE(error_of("swiglu/forward/fused/f32/T=1,F=2,inputs=odd").find("no inputs 'odd'"),
            std::string::npos);
  EXPECT_NE(error_of("rms_norm/forward/fused/f32/T=1,H=2,casting=mistral").find("llama, gemma"),
            std::string::npos);
  EXPECT_NE(error_of("rms_norm/forward/fused/f32/T=1,H=2,eps=small").find("not a number"),
            std::string::npos);
  EXPECT_NE(error_of("rms_norm/forward/fused/f32/T=1,H=2,w=1").find("absent"), std::string::npos);
  EXPECT_NE(error_of("rope/forward/fused/f32/T=1,Q=1,K=1,D=2,q_out=absent").find("given"),
            std::string::npos);
  EXPECT_NE(error_of("rope/forward/fused/f32/T=1,Q=1,K=1,D=6,rotary=8").find("do not fit"),
            std::string::npos);
  EXPECT_NE(error_of("rms_norm/forward/fused/f32/T=1,H").find("key=value"), std::string::npos);
}

TEST(Case, hash_never_changes) {
  EXPECT_EQ(stable_hash(""), 0xefd01f60ba992926u);
  EXPECT_EQ(stable_hash("tigon"), stable_hash("tigon"));
  EXPECT_NE(stable_hash("tigon"), stable_hash("tiger"));
}

TEST(Select, unknown_names_are_usage_errors) {
  CheckRequest r;
  r.ops = {"nosuch"};
  EXPECT_THROW(select_cases(r), UsageError);
  r = {};
  r.passes = {"sideways"};
  EXPECT_THROW(select_cases(r), UsageError);
  r = {};
  r.implementations = {"magic"};
  EXPECT_THROW(select_cases(r), UsageError);
  r = {};
  r.axes = {{"Z", {1}}};
  EXPECT_THROW(select_cases(r), UsageError);
  r = {};
  r.axes = {{"T", {-1}}};
  EXPECT_THROW(select_cases(r), UsageError);
  r = {};
  r.filter = "(";
  EXPECT_THROW(select_cases(r), UsageError);
  r = {};
  r.shard_index = 3;
  r.shard_count = 3;
  EXPECT_THROW(select_cases(r), UsageError);
}

TEST(Select, a_number_of_ranks_takes_the_passes_over_ranks_each_case_once) {
  CheckRequest request;
  request.tier = Tier::kTiny;
  request.ranks = 4;
  std::set<std::string> ids;
  for (const Case& c : select_cases(request)) {
    EXPECT_EQ(c.options.at(kRanksOption), "4") << case_id(c);
    EXPECT_TRUE(ids.insert(case_id(c)).second) << case_id(c);
  }
  EXPECT_GT(ids.size(), 100u);
  request.ops = {"rope"};
  EXPECT_THROW(select_cases(request), UsageError);
}

// In a host build, and in one without its headers, cudnn is such a one.
TEST(Select, what_this_program_lacks_is_selected_by_name_alone_and_says_why) {
  const Pass& pass = find_op("rms_norm")->passes.front();
  const Implementation& cudnn = *find_implementation(pass, "cudnn");
  if (cudnn.absent.empty()) GTEST_SKIP() << "this program has all";
  CheckRequest request;
  request.ops = {"rms_norm"};
  for (const Case& c : select_cases(request)) EXPECT_NE(c.impl, "cudnn") << case_id(c);
  request.implementations = {"cudnn"};
  const std::vector<Case> cases = select_cases(request);
  ASSERT_FALSE(cases.empty());
  bool fatal = false;
  const CheckResult result = run_case(cases.front(), "", &fatal);
  EXPECT_EQ(result.verdict, Verdict::kUnsupported);
  EXPECT_EQ(result.reason, cudnn.absent);
}

TEST(Select, shards_cover_every_case_once) {
  CheckRequest r;
  r.ops = {"swiglu"};
  std::set<std::string> all, seen;
  for (const Case& c : select_cases(r)) all.insert(case_id(c));
  r.shard_count = 3;
  for (r.shard_index = 0; r.shard_index < 3; ++r.shard_index)
    for (const Case& c : select_cases(r)) EXPECT_TRUE(seen.insert(case_id(c)).second);
  EXPECT_EQ(seen, all);
}

TEST(Select, filters_by_regular_expression_and_its_negation) {
  CheckRequest r;
  r.ops = {"rms_norm"};
  const size_t all = select_cases(r).size();
  r.filter = "inputs=(small_rows|offset)";
  const size_t some = select_cases(r).size();
  r.filter = "-" + r.filter;
  EXPECT_GT(some, 0u);
  EXPECT_EQ(some + select_cases(r).size(), all);
}

TEST(Select, given_axes_replace_those_of_the_contract) {
  CheckRequest r;
  r.ops = {"rms_norm"};
  r.axes = {{"H", {77}}};
  for (const Case& c : select_cases(r)) EXPECT_EQ(c.axes.at("H"), 77);
}

TEST(Select, the_seed_is_that_of_the_request) {
  CheckRequest r;
  r.ops = {"swiglu"};
  r.seed = 5;
  for (const Case& c : select_cases(r)) EXPECT_EQ(c.seed, 5u);
}

}  // namespace
}  // namespace tigon
