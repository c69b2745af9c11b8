// What every contract must hold for the harness to see faults: edge sizes, options, budgets,
// inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/run/check.h"
#include "harness/run/oracle.h"

namespace tigon {
namespace {

bool is_output(const TensorInfo& t) { return t.role != Role::kIn; }

class Contract : public testing::TestWithParam<std::string> {
 protected:
  const OpSpec& op() const { return *find_op(GetParam()); }
};

TEST_P(Contract, every_output_has_a_budget_and_every_budget_an_output) {
  for (const Pass& pass : op().passes) {
    std::set<std::string> outputs, budgets;
    for (const TensorInfo& t : pass.tensors)
      if (is_output(t)) outputs.insert(t.name);
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
  for (const AxisPlan& a : op().axes) {
    EXPECT_FALSE(a.tiny.empty() || a.check.empty() || a.sweep.empty() || a.host_sweep.empty());
    const bool rows = std::string(a.axis.symbol) == "T";
    EXPECT_TRUE(!rows || std::count(a.check.begin(), a.check.end(), 0)) << "no case of 0 rows";
  }
}

TEST_P(Contract, strided_tensors_exist) {
  for (const Pass& pass : op().passes)
    for (const std::string& name : pass.strided)
      EXPECT_TRUE(std::any_of(pass.tensors.begin(), pass.tensors.end(), [&](const TensorInfo& t) {
        return t.name == name;
      })) << name;
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
  }
}

// The tier must stay small enough for a minute on two cores.
TEST_P(Contract, number_of_cases_is_bounded) {
  CheckRequest request;
  request.ops = {GetParam()};
  EXPECT_LT(select_cases(request).size(), 1500u);
}

// An input that the oracle does not depend on is not tested: two seeds must differ.
TEST_P(Contract, outputs_change_with_the_seed) {
  CheckRequest request;
  request.ops = {GetParam()};
  request.tier = Tier::kTiny;
  request.dtypes = {DType::kF32};
  request.filter = "fused/f32/[^/]*inputs=normal,seed=42$";
  for (Case c : select_cases(request)) {
    if (c.axes.count("H") && c.axes.at("H") == 1) continue;  // rms_norm of one column is a sign
    if (c.axes.count("V") && c.axes.at("V") == 1) continue;  // one class has no loss
    const auto first = run_oracle(make_problem(c));
    c.seed = 43;
    const auto second = run_oracle(make_problem(c));
    bool differs = false;
    for (const auto& [name, expected] : first) differs |= expected.value != second.at(name).value;
    EXPECT_TRUE(differs) << case_id(c);
  }
}

// An option that moves no output by more than its budget is not tested by these inputs.
TEST_P(Contract, every_option_set_is_visible) {
  for (const Pass& pass : op().passes)
    for (const OptionSet& set : op().option_sets) {
      Case c;
      c.op = op().name;
      c.pass = pass.name;
      c.impl = "fused";
      c.inputs = op().inputs.front().name;
      for (const AxisPlan& a : op().axes) c.axes[a.axis.symbol] = a.tiny.back();
      const auto plain = run_oracle(make_problem(c));
      for (const auto& [name, value] : set) {
        const bool known = std::any_of(pass.options.begin(), pass.options.end(),
                                       [&](const OptionInfo& o) { return o.name == name; });
        // How rows are cut into chunks must not show; where the forward rounds is its budget's.
        if (!known || name == "logits_bytes" || name == "casting") continue;
        Case changed = c;
        changed.options[name] = value;
        const Problem problem = make_problem(changed);
        double largest = 0;
        for (const auto& [output, expected] : run_oracle(problem)) {
          const Expected& before = plain.at(output);
          if (expected.value.size() != before.value.size()) largest = 2;
          for (const CaseTensor& t : problem.tensors)
            if (t.info->name == output && largest < 2)
              for (size_t i = 0; i < expected.value.size(); ++i) {
                const double allowed =
                    allowed_error(budget_of(problem, t), magnitudes_of(expected, i));
                largest =
                    std::max(largest, std::abs(expected.value[i] - before.value[i]) / allowed);
              }
        }
        EXPECT_GT(largest, 1) << pass.name << " " << name << "=" << value;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Ops, Contract, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const OpSpec& op : all_ops()) names.push_back(op.name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tigon
