// SPDX-License-Identifier: Apache-2.0
// An implementation whose framework makes its gradients: what it takes, and what is judged of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/run/check.h"
#include "harness/run/judging/oracle.h"
#include "harness/run/judging/runner.h"
#include "harness/spec/registry.h"

namespace tigon {
namespace {

constexpr const char* kFramework = "framework";

// The problem of a case of an op, whose passes have such an implementation.
Problem problem_of(const std::string& op, const std::string& rest) {
  for (const Pass& pass : find_op(op)->passes)
    if (find_implementation(pass, kFramework) == nullptr)
      add_implementation(op, pass.name,
                         {.name = kFramework,
                          .policies = {DType::kF32, DType::kBF16},
                          .workspace = {},
                          .run = [](DType, const Bound&, Stream) { return unsupported("no"); },
                          .is_differentiated = true});
  return make_problem(parse_case(op + "/" + rest));
}

const CaseTensor* find(const Problem& problem, const std::string& name) {
  const auto found = std::find_if(problem.tensors.begin(), problem.tensors.end(),
                                  [&](const CaseTensor& t) { return t.info->name == name; });
  return found == problem.tensors.end() ? nullptr : &*found;
}

TEST(Differentiated, forward_keeps_nothing_that_is_judged) {
  const Problem problem = problem_of("rms_norm", "forward/framework/f32/T=2,H=8");
  EXPECT_FALSE(find(problem, "rstd")->is_output);
  EXPECT_TRUE(find(problem, "y")->is_output);
  EXPECT_EQ(run_oracle(problem).count("rstd"), 0u);
  EXPECT_EQ(run_oracle(problem).count("y"), 1u);
}

TEST(Differentiated, gradients_take_the_inputs_that_what_is_kept_was_made_of) {
  const Problem forward = problem_of("softmax", "forward/framework/bf16/T=2,V=7");
  const Problem problem = problem_of("softmax", "backward/framework/bf16/T=2,V=7");
  const CaseTensor* x = find(problem, "x");
  ASSERT_NE(x, nullptr);
  EXPECT_TRUE(x->is_input);
  EXPECT_FALSE(x->is_output);
  EXPECT_EQ(x->input, find(forward, "x")->input);
  EXPECT_EQ(x->input.size(), 14u);
}

TEST(Differentiated, what_forward_changes_in_place_is_an_input_of_gradients) {
  const Problem problem = problem_of("rope", "backward/framework/f32/T=2,Q=1,K=1,D=4");
  EXPECT_TRUE(find(problem, "q")->is_input);
  EXPECT_FALSE(find(problem, "q")->is_output);
  EXPECT_TRUE(find(problem, "dq")->is_output);
  EXPECT_EQ(std::count_if(problem.tensors.begin(), problem.tensors.end(),
                          [](const CaseTensor& t) { return t.info->name == "cos"; }),
            1);
}

TEST(Differentiated, what_is_left_out_of_forward_is_left_out_of_gradients) {
  const std::string at = "backward/framework/f32/T=2,H=8";
  EXPECT_NE(find(problem_of("layer_norm", at), "b"), nullptr);
  EXPECT_EQ(find(problem_of("layer_norm", at + ",w=absent,dw=absent"), "w"), nullptr);
}

TEST(Differentiated, what_it_makes_of_nan_is_its_own) {
  problem_of("softmax", "forward/framework/f32/T=2,V=7");
  std::set<std::string> inputs;
  CheckRequest request;
  request.ops = {"softmax"};
  request.implementations = {kFramework};
  for (const Case& c : select_cases(request)) inputs.insert(c.inputs);
  EXPECT_EQ(inputs.count("confident"), 1u);
  EXPECT_EQ(inputs.count("one_nan"), 0u);
}

TEST(Differentiated, another_implementation_takes_its_pass_alone) {
  EXPECT_EQ(find(make_problem(parse_case("softmax/backward/fused/f32/T=2,V=7")), "x"), nullptr);
}

}  // namespace
}  // namespace tigon
