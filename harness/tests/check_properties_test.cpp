// SPDX-License-Identifier: Apache-2.0
// Every property fails for an implementation that breaks it, and says where.
#include <gtest/gtest.h>

#include <set>

#include "harness/run/check.h"
#include "harness/run/judging/properties.h"

namespace tigon {
namespace {

struct Broken {
  const char* pass;
  const char* implementation;
  const char* property;
  Verdict verdict;
  const char* reason;  // a part of it
};

constexpr Verdict kWrong = Verdict::kIncorrectNumerical;

const std::vector<Broken>& all_broken() {
  static const std::vector<Broken> all = {
      {"weigh", "reads_next_row", "row_independence", kWrong, "is nan (counting rows 0, 2, ...)"},
      {"weigh", "numbers_rows", "row_independence", kWrong, "with the rows in reverse"},
      {"weigh", "counts_rows", "row_independence", kWrong, "as a single row"},
      {"weigh", "one_in_ignored", "ignored_rows", kWrong, "in an ignored row, not 0"},
      {"weigh", "stretches_max", "shift_invariance", kWrong, "m[0] is "},
      {"weigh", "takes_abs_upstream", "gradient_scaling", kWrong, "with inputs times -1"},
      {"weigh", "reads_ignored", "ignored_rows", kWrong, "with nan in ignored rows"},
      {"weigh", "prefers_first", "permutation", kWrong, "with V in another order"},
      {"weigh", "padding_is_one", "padding", kWrong, "columns of -inf more"},
      {"weigh", "forgets_max", "shift_invariance", kWrong, "with inputs plus 16"},
      {"weigh", "adds_a_little", "power_of_two", kWrong, "with inputs times"},
      {"weigh", "ignores_upstream", "gradient_scaling", kWrong, "with inputs times"},
      {"weigh", "adds_a_little", "linearity", kWrong, "scaled from the unscaled result"},
      {"weigh", "twice_without_weight", "neutral_weight", kWrong, "with w=absent"},
      {"weigh", "sums_in_elem", "dtype_twin", kWrong, "in f32 on the same values"},
      {"weigh", "counts_calls_too", "rerun", Verdict::kNondeterministic, "y[0,0] is "},
      {"weigh", "keeps_first_size", "size_sequence", kWrong, "y[0,0]: got 0"},
      {"weigh", "keeps_result_of_address", "graph_replay", kWrong, "y[0,0]: got "},
      {"weigh", "aligns_address", "offsets", kWrong, "is 1 elements off"},
      {"weigh", "ignores_stride", "row_gaps", kWrong, "with 16 elements between the rows of x"},
      {"centre", "forgets_mean", "orthogonality", kWrong, "row 0 of z times ones is "},
      {"centre", "writes_first", "in_place", kWrong, "in the input's memory"},
      {"turn", "stretches", "pair_norm", kWrong, "norm of the pair of q[0,0] is "},
      {"turn", "stretches", "composition", kWrong, "turned by two angles"},
      {"turn", "turns_even_rows", "relative_position", kWrong, "at the same distance"},
      {"turn_back", "turns_one_way", "negated_angle", kWrong, "q[1,0] is "},
      {"turn_back", "turns_one_way", "inverse", kWrong, "there and back"},
      {"stretch", "fused_trusts_sizes", "refusals", kWrong,
       "with the default options: not refused"},
      {"stretch", "fused_nearly_one", "option_values", kWrong, "y[0,0]"},
      {"stretch", "fused_forgets_far", "far_rows", kWrong, "2147483632 between rows of x"},
  };
  return all;
}

CheckRequest request_for(const std::string& pass, const std::string& implementation) {
  CheckRequest request;
  request.ops = {"relations"};
  request.passes = {pass};
  request.implementations = {implementation};
  return request;
}

std::vector<CheckResult> results_of(const CheckRequest& request) {
  std::vector<CheckResult> results;
  run_checks(request, [&](const CheckResult& r) { results.push_back(r); });
  return results;
}

class Property_ : public testing::TestWithParam<Broken> {};

TEST_P(Property_, fails_where_it_is_broken) {
  CheckRequest request = request_for(GetParam().pass, GetParam().implementation);
  request.properties = {GetParam().property};
  const auto results = results_of(request);
  ASSERT_FALSE(results.empty());
  const CheckResult* failed = nullptr;
  for (const CheckResult& r : results)
    if (is_failure(r.verdict)) failed = &r;
  ASSERT_TRUE(failed) << "passed, " << results.front().reason;
  EXPECT_STREQ(name_of(failed->verdict), name_of(GetParam().verdict));
  EXPECT_NE(failed->reason.find(std::string("property ") + GetParam().property + ": "),
            std::string::npos)
      << failed->reason;
  EXPECT_NE(failed->reason.find(GetParam().reason), std::string::npos) << failed->reason;
  EXPECT_NE(failed->repro.find(std::string("prop=") + GetParam().property), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Broken, Property_, testing::ValuesIn(all_broken()), [](const auto& info) {
  return std::string(info.param.property) + "_" + info.param.implementation;
});

TEST(Properties, hold_for_a_sound_implementation) {
  for (const char* pass : {"weigh", "centre", "turn", "turn_back", "stretch"})
    for (const CheckResult& r :
         results_of(request_for(pass, pass == std::string("stretch") ? "fused" : "sound"))) {
      const bool stream = r.c.property.find("stream") != std::string::npos;
      EXPECT_EQ(r.verdict, stream ? Verdict::kUnsupported : Verdict::kPassed)
          << case_id(r.c) << ": " << r.reason;
    }
}

TEST(Properties, each_is_seen_to_fail) {
  std::set<std::string> seen = {"second_stream", "two_streams"};  // of a GPU
  for (const Broken& b : all_broken()) seen.insert(b.property);
  for (const std::string& name : property_names()) EXPECT_TRUE(seen.count(name)) << name;
}

TEST(Properties, streams_are_said_to_be_unsupported_on_the_host) {
  CheckRequest request = request_for("weigh", "sound");
  request.properties = {"two_streams"};
  const auto results = results_of(request);
  ASSERT_FALSE(results.empty());
  EXPECT_EQ(results[0].verdict, Verdict::kUnsupported);
  EXPECT_NE(results[0].reason.find("the host executor has no streams"), std::string::npos);
}

TEST(Properties, a_repro_is_the_same_case) {
  CheckRequest request = request_for("weigh", "reads_next_row");
  request.properties = {"row_independence"};
  const auto first = results_of(request);
  request = {};
  request.cases = {parse_case(case_id(first.at(0).c))};
  const auto again = results_of(request);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].reason, first[0].reason);
}

TEST(Properties, an_unknown_one_is_a_usage_error_that_names_the_known) {
  try {
    parse_case("relations/turn/sound/f32/T=3,V=6,prop=pair_nom");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("no property 'pair_nom'; known: pair_norm"),
              std::string::npos)
        << e.what();
  }
  CheckRequest request;
  request.properties = {"pair_nom"};
  EXPECT_THROW(select_cases(request), UsageError);
}

}  // namespace
}  // namespace tigon
