// SPDX-License-Identifier: Apache-2.0
// Properties of columns: permutation, padding, shift.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"

namespace tigon {

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// 0 .. n-1 in another order, the same on every machine (a linear congruential generator's draws).
std::vector<size_t> shuffled(size_t n) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  uint64_t state = 1;
  for (size_t i = n; i > 1; --i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(order[i - 1], order[(state >> 33) % i]);
  }
  return order;
}

// Element j along dimension d of the result is element order[j] of t.
HostTensor reordered(const HostTensor& t, int d, const std::vector<size_t>& order) {
  HostTensor result = t;
  const auto at = static_cast<size_t>(d);
  size_t inner = 1;
  for (size_t k = at + 1; k < t.shape.size(); ++k) inner *= static_cast<size_t>(t.shape[k]);
  const size_t n = order.size();
  for (size_t i = 0; i < t.values.size(); ++i) {
    const size_t j = i / inner % n, outer = i / inner / n;
    result.values[i] = t.values[(outer * n + order[j]) * inner + i % inner];
  }
  return result;
}

// Classes that are columns get the columns' new numbers; others (ignored, invalid) stay.
void renumber(const std::vector<size_t>& order, HostTensor* target) {
  std::vector<double> number(order.size());
  for (size_t j = 0; j < order.size(); ++j) number[order[j]] = static_cast<double>(j);
  for (double& c : target->values)
    if (c >= 0 && c < static_cast<double>(order.size())) c = number[static_cast<size_t>(c)];
}

}  // namespace

Property permutation(std::string axis, std::string target) {
  const auto check = [=](Experiment& e) {
    const auto order = shuffled(static_cast<size_t>(e.base().axes.at(axis)));
    Call call = e.base();
    for (auto& [name, tensor] : call.inputs)
      if (name == target)
        renumber(order, &tensor);
      else if (const int d = e.dimension_of(name, axis); d >= 0)
        tensor = reordered(tensor, d, order);
    const HostTensors outputs = e.run(call);
    const auto before = e.budgets(e.base()), after = e.budgets(call);
    for (const auto& [name, tensor] : e.base_outputs()) {
      const int d = e.dimension_of(name, axis);
      HostTensor want = tensor, allowed = tensor;
      allowed.values = before.at(name);
      if (d >= 0) want = reordered(want, d, order), allowed = reordered(allowed, d, order);
      expect_close(name, outputs.at(name), want, sum(allowed.values, after.at(name)),
                   fmt::format("with {} in another order", axis), "there before");
    }
  };
  return {"permutation", fmt::format("another order of {} gives the same results in it", axis),
          check};
}

Property padding(std::string axis, std::vector<std::string> tensors) {
  constexpr int64_t kMore = 13;  // odd: other pieces, another tail
  const auto check = [=](Experiment& e) {
    Call call = e.base();
    const int64_t columns = call.axes.at(axis);
    call.axes[axis] = columns + kMore;
    const auto widened = [&](const HostTensor& narrow, double value) {
      HostTensor wide = narrow;
      wide.shape.back() += kMore;
      wide.values.clear();
      for (size_t i = 0; i < narrow.values.size(); i += static_cast<size_t>(columns)) {
        const auto row = narrow.values.begin() + static_cast<int64_t>(i);
        wide.values.insert(wide.values.end(), row, row + columns);
        wide.values.insert(wide.values.end(), kMore, value);
      }
      return wide;
    };
    for (auto& [name, input] : call.inputs)
      if (contains(tensors, name))
        input = widened(input, -std::numeric_limits<double>::infinity());
      else if (e.dimension_of(name, axis) >= 0)
        input = widened(input, 1);  // e.g. weights of the columns
    const HostTensors outputs = e.run(call);
    const auto budgets = e.budgets(e.base());
    for (const auto& [name, base] : e.base_outputs()) {
      HostTensor want = base, allowed = base;
      allowed.values = sum(budgets.at(name), budgets.at(name));
      if (e.dimension_of(name, axis) >= 0) want = widened(want, 0), allowed = widened(allowed, 0);
      expect_close(name, outputs.at(name), want, allowed.values,
                   fmt::format("with {} columns of -inf more", kMore), "without (0 in them)");
    }
  };
  return {"padding",
          fmt::format("columns of -inf in {} change nothing and get gradient 0",
                      fmt::join(tensors, " and ")),
          check};
}

namespace {

constexpr double kShift = 16;

// Values below 8 on the grid of the type at 16 to 32: sums with kShift are exact. Saved fp32 inputs
// keep theirs.
void make_exact(HostTensor* t) {
  const double step = 2 * unit_roundoff(t->dtype) * kShift;
  for (double& v : t->values) v = std::clamp(std::round(v / step) * step, -8.0, 8.0);
}

}  // namespace

Property shift_invariance(std::vector<std::string> inputs, ShiftedOutputs named) {
  const auto check = [=](Experiment& e) {
    Call base = e.base();
    for (const std::string& name : inputs) make_exact(&base.inputs.at(name));
    Call call = base;
    for (const std::string& name : inputs)
      for (double& v : call.inputs.at(name).values) v += kShift;
    const size_t columns = static_cast<size_t>(base.inputs.at(inputs.front()).shape.back());
    const HostTensors before = e.run(base), outputs = e.run(call);
    const auto budgets = e.budgets(base), shifted_budgets = e.budgets(call);
    const std::string when = fmt::format("with inputs plus {}", kShift);
    for (const auto& [name, unshifted] : before) {
      HostTensor want = unshifted;
      if (contains(named.same, name) && columns <= named.same_columns) {
        expect_same(name, outputs.at(name), want, when, "without");
        continue;
      }
      if (contains(named.shifted, name))
        for (double& v : want.values) v += kShift;
      // 4 ulp of a number between 16 and 32.
      const bool to_ulp = contains(named.shifted, name) || contains(named.near, name);
      const std::vector<double> ulp(want.values.size(), 4 * 2 * unit_roundoff(want.dtype) * kShift);
      expect_close(name, outputs.at(name), want,
                   to_ulp ? ulp : sum(budgets.at(name), shifted_budgets.at(name)), when,
                   contains(named.shifted, name) ? "without, plus that" : "without");
    }
  };
  return {"shift_invariance", "adding a constant to the inputs only shifts what must shift", check};
}

}  // namespace tigon
