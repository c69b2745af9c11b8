// SPDX-License-Identifier: Apache-2.0
// What every contract must hold for the harness to see faults: edge sizes, options, budgets,
// inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/run/cases/pass_sets.h"
#include "harness/run/check.h"
#include "harness/run/inputs/inputs.h"
#include "harness/tests/each_op.h"

namespace tigon {
namespace {

class Contract : public testing::TestWithParam<std::string> {
 protected:
  const OpSpec& op() const { return *find_op(GetParam()); }
};

TEST_P(Contract, every_output_has_a_budget_and_every_budget_an_output) {
  for (const Pass& pass : op().passes) {
    std::set<std::string> outputs, budgets;
    for (const TensorInfo& t : pass.tensors)
      if (t.is_output()) outputs.insert(t.name);
    for (const auto& [name, budget] : pass.budget) budgets.insert(name);
    EXPECT_EQ(outputs, budgets) << pass.name;
  }
}

TEST_P(Contract, every_option_is_seen_at_another_value_and_every_optional_tensor_absent) {
  std::set<std::string> seen;
  for (const OptionSet& set : op().option_sets)
    for (const auto& [name, value] : set) seen.insert(name);
  for (const Pass& pass : op().passes) {
    for (const OptionInfo& o : pass.options) EXPECT_TRUE(seen.count(o.name)) << o.name;
    for (const TensorInfo& t : pass.tensors)
      EXPECT_TRUE(!t.is_optional || seen.count(t.name)) << t.name;
  }
}

TEST_P(Contract, plans_name_tensors_and_axes_have_edge_sizes) {
  std::set<std::string> tensors;
  for (const Pass& pass : op().passes)
    for (const TensorInfo& t : pass.tensors) tensors.insert(t.name);
  for (const InputSet& set : op().inputs)
    for (const InputPlan& plan : set.plans) EXPECT_TRUE(tensors.count(plan.tensor)) << plan.tensor;
  const std::string rows = op().axes.front().axis.symbol;
  for (const AxisPlan& a : op().axes) {
    EXPECT_FALSE(a.tiny.empty() || a.check.empty() || a.sweep.empty() || a.host_sweep.empty());
    EXPECT_TRUE(a.axis.symbol != rows || std::count(a.check.begin(), a.check.end(), 0))
        << "no case of 0 rows";
  }
}

TEST_P(Contract, indices_have_a_plan_that_says_their_size) {
  for (const InputSet& set : op().inputs)
    for (const Pass& pass : op().passes)
      for (const TensorInfo& t : pass.tensors)
        EXPECT_TRUE(t.dtype.at(DType::kF32) != DType::kI64 || plan_of(set, t.name).below)
            << set.name << " " << t.name;
}

TEST_P(Contract, aliases_are_outputs_over_inputs_of_their_size) {
  for (const Pass& pass : op().passes)
    for (const TensorInfo& output : pass.tensors)
      for (const std::string& name : output.may_alias) {
        const auto input = std::find_if(pass.tensors.begin(), pass.tensors.end(),
                                        [&](const TensorInfo& t) { return t.name == name; });
        ASSERT_NE(input, pass.tensors.end()) << name;
        EXPECT_EQ(output.role, Role::kOut) << output.name;
        EXPECT_EQ(input->role, Role::kIn) << name;
        EXPECT_EQ(input->dtype, output.dtype) << output.name;
        ASSERT_EQ(input->shape.size(), output.shape.size()) << output.name;
        for (size_t d = 0; d < output.shape.size(); ++d)
          EXPECT_EQ(input->shape[d].text(), output.shape[d].text()) << output.name;
      }
}

TEST_P(Contract, has_naive_and_fused_for_every_pass_and_a_positive_cost) {
  for (const Pass& pass : op().passes) {
    EXPECT_TRUE(find_implementation(pass, "naive"));
    EXPECT_TRUE(find_implementation(pass, "fused"));
  }
  CheckRequest request;
  request.ops = {GetParam()};
  request.tier = Tier::kTiny;
  for (const Case& c : select_cases(request)) {
    EXPECT_GT(minimum_bytes(c), 0) << case_id(c);
    EXPECT_GT(flops_of(c), 0) << case_id(c);
    double flops = 0;
    for (const ProductSize& p : products_of(c)) flops += 2.0 * p.m * p.n * p.k;
    if (c.options.empty() && flops > 0) {
      EXPECT_EQ(flops, flops_of(c)) << case_id(c);
    }
  }
}

// Ordinary inputs are no excuse, and our own kernels have none.
TEST_P(Contract, known_misses_are_a_librarys_on_inputs_beside_the_default) {
  for (const Pass& pass : op().passes)
    for (const Implementation& i : pass.implementations)
      for (const KnownMiss& miss : i.known_misses) {
        EXPECT_TRUE(is_library(i)) << i.name;
        EXPECT_TRUE(std::any_of(op().inputs.begin() + 1, op().inputs.end(), [&](const InputSet& s) {
          return s.name == miss.inputs && input_set_applies(pass, s, op().inputs.front());
        })) << miss.inputs;
        EXPECT_FALSE(miss.policies.empty() || miss.reason.empty()) << miss.inputs;
      }
}

bool is_further(const OpSpec& op, const Case& c) {
  const auto shapes = further_shapes(op, c.dtype);
  return std::find(shapes.begin(), shapes.end(), c.axes) != shapes.end();
}

// Rows of a length that the contract does not name, as it is or in whole vectors: of a launch
// shape.
bool is_of_launch(const OpSpec& op, const Case& c) {
  const AxisPlan& row = op.axes.back();
  const int64_t length = c.axes.at(row.axis.symbol);
  for (const auto* sizes : {&row.tiny, &row.check})
    for (const int64_t size : *sizes)
      if (length == size || length == (size + 15) / 16 * 16) return false;
  return !is_further(op, c);
}

// The tier must stay small enough for a minute on two cores. A property makes several calls, up to
// 20 where the oracle judges them, so there may be a third as many.
TEST_P(Contract, number_of_cases_is_bounded) {
  const OpSpec& op = *find_op(GetParam());
  CheckRequest request;
  request.ops = {GetParam()};
  const std::vector<Case> cases = select_cases(request);
  int64_t properties = 0, others = 0;
  std::map<std::map<std::string, int64_t>, int64_t> on_paths, of_launches;
  for (const Case& c : cases) {
    if (is_of_launch(op, c))
      ++of_launches[c.axes];
    else if (!c.property.empty())
      ++properties;
    else if (is_further(op, c))
      ++on_paths[c.axes];
    else
      ++others;
  }
  EXPECT_LT(properties, 500);
  for (const auto& [axes, count] : on_paths) EXPECT_LT(count, 130) << "on one launch path";
  EXPECT_LT(others, 1500);
  for (const auto& [axes, count] : of_launches)
    EXPECT_LT(count, 400) << "of one launch shape, " << axes.at(op.axes.back().axis.symbol);
}

// The wide rows of a quick check, with their element types.
std::multimap<std::map<std::string, int64_t>, DType> wide_rows(const OpSpec& op,
                                                               const std::vector<DType>& types) {
  CheckRequest request;
  request.ops = {op.name};
  request.implementations = {"fused"};
  request.dtypes = types;
  request.tier = Tier::kTiny;
  request.quick = true;
  std::multimap<std::map<std::string, int64_t>, DType> rows;
  for (const Case& c : select_cases(request))
    if (is_further(op, c) && c.pass == op.passes.front().name && c.inputs == op.inputs.front().name)
      rows.emplace(c.axes, c.dtype);
  return rows;
}

TEST_P(Contract, a_quick_check_meets_each_wide_row_in_one_type) {
  const OpSpec& op = *find_op(GetParam());
  const size_t all = op.further_shapes.size() + op.further_shapes_of_one_type.size();
  const auto rows = wide_rows(op, {});
  EXPECT_EQ(rows.size(), all);
  for (const auto& [shape, type] : rows) EXPECT_EQ(rows.count(shape), 1u) << name_of(type);
  EXPECT_EQ(wide_rows(op, {op.policies.front()}).size(), all) << "of one chosen type";
  EXPECT_EQ(wide_rows(op, {op.policies.back()}).size(), op.further_shapes.size());
}

INSTANTIATE_TEST_SUITE_P(Ops, Contract, testing::ValuesIn(op_names()), name_of_parameter);

}  // namespace
}  // namespace tigon
