// SPDX-License-Identifier: Apache-2.0
// The smallest case that still fails, and what is said of a failing one.
#include <gtest/gtest.h>

#include "harness/run/judging/diagnose.h"

namespace tigon {
namespace {

const std::function<bool()> kForever = [] { return true; };

TEST(Shrink, drops_what_the_failure_does_not_need) {
  const Case c =
      parse_case("faulty/forward/right/f32/N=40,M=33,factor=3,w=absent,inputs=large,gap=3");
  const Shrunk s = shrink(
      c, [](const Case& x) { return x.axes.at("M") >= 12 && x.options.count("w") == 1; }, kForever);
  EXPECT_EQ(case_id(s.smallest),
            "faulty/forward/right/f32/N=1,M=12,w=absent,inputs=normal,seed=42");
  EXPECT_EQ(s.needs, std::vector<std::string>{"w=absent"});
  EXPECT_TRUE(s.finished);
}

TEST(Shrink, finds_sizes_that_fail_by_their_remainder) {
  const Case c = parse_case("faulty/forward/right/f32/N=40,M=4099,inputs=large,shift=1");
  const Shrunk s = shrink(
      c,
      [](const Case& x) { return x.axes.at("M") > 100 && x.axes.at("M") % 8 != 0 && x.shift == 1; },
      kForever);
  EXPECT_GT(s.smallest.axes.at("M"), 100);
  EXPECT_LT(s.smallest.axes.at("M"), 130);
  EXPECT_EQ(s.needs, std::vector<std::string>{"shift=1"});
  EXPECT_LT(s.tries, 100);
}

TEST(Shrink, stops_when_time_is_over) {
  int left = 3;
  const Shrunk s = shrink(
      parse_case("faulty/forward/right/f32/N=40,M=4099"), [](const Case&) { return false; },
      [&] { return left-- > 0; });
  EXPECT_EQ(s.tries, 3);
  EXPECT_FALSE(s.finished);
}

// The failing case of a request for one case, looked at again.
std::optional<Diagnosis> diagnosis_of(const std::string& id, double seconds = 5) {
  CheckRequest request;
  request.cases = {parse_case(id)};
  std::optional<Diagnosis> d;
  Diagnoser diagnoser(seconds, seconds);
  run_checks(request, [&](const CheckResult& r) { d = diagnoser.look_at(r, request); });
  return d;
}

TEST(Diagnose, a_wrong_element) {
  const auto d =
      diagnosis_of("faulty/forward/wrong_wide_triple/f32/N=40,M=33,factor=3,inputs=large");
  ASSERT_TRUE(d);
  EXPECT_EQ(case_id(d->shrunk.smallest),
            "faulty/forward/wrong_wide_triple/f32/N=1,M=6,factor=3,inputs=normal,seed=42");
  EXPECT_EQ(d->smallest.verdict, Verdict::kIncorrectNumerical);
  EXPECT_EQ(d->smallest.outputs.at(0).first_index, (std::vector<int64_t>{0, 5}));
  EXPECT_EQ(d->facts,
            (std::vector<std::string>{"guards around every tensor intact", "same bits in 4 calls",
                                      "fails with 3 of 3 other seeds: not the data"}));
}

TEST(Diagnose, a_crash_while_it_shrinks_loses_nothing) {
  const auto d = diagnosis_of("faulty/forward/crashes_on_wide/bf16/N=40,M=33");
  ASSERT_TRUE(d);
  EXPECT_EQ(case_id(d->shrunk.smallest),
            "faulty/forward/crashes_on_wide/bf16/N=2,M=17,inputs=normal,seed=42");
  EXPECT_EQ(d->smallest.verdict, Verdict::kCrashed);
}

TEST(Diagnose, says_what_moves) {
  const auto calls = diagnosis_of("faulty/forward/counts_calls/f32/N=3,M=5");
  ASSERT_TRUE(calls);
  EXPECT_EQ(calls->facts.at(1).rfind("moves from call to call: y[0,0]", 0), 0u)
      << calls->facts.at(1);
  const auto poison = diagnosis_of("faulty/forward/reads_scratch/f32/N=3,M=5");
  ASSERT_TRUE(poison);
  EXPECT_EQ(poison->facts.at(2).rfind("moves with what outputs and workspace held before", 0), 0u);
}

TEST(Diagnose, says_that_a_guard_is_damaged) {
  const auto d = diagnosis_of("faulty/forward/behind/f32/N=3,M=5");
  ASSERT_TRUE(d);
  EXPECT_NE(d->facts.at(0).find("behind the end of y"), std::string::npos) << d->facts.at(0);
}

TEST(Diagnose, one_case_of_a_kind_and_no_time_out) {
  EXPECT_FALSE(diagnosis_of("faulty/forward/wrong/f32/N=3,M=5", 0));
  CheckRequest request;
  request.implementations = {"wrong", "hangs"};
  request.timeout_s = 0.3;
  request.tier = Tier::kTiny;
  request.filter = "inputs=normal,seed=42$";
  int looked = 0;
  Diagnoser diagnoser(5, 5);
  run_checks(request,
             [&](const CheckResult& r) { looked += diagnoser.look_at(r, request).has_value(); });
  EXPECT_EQ(looked, 1);
}

}  // namespace
}  // namespace tigon
