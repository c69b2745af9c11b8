// SPDX-License-Identifier: Apache-2.0
// Properties of rows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"

namespace tigon {

namespace {

bool is_floating(DType t) {
  return t == DType::kF64 || t == DType::kF32 || t == DType::kBF16 || t == DType::kF16;
}

int64_t row_length(const HostTensor& t) {
  return t.shape[0] == 0 ? 0 : static_cast<int64_t>(t.values.size()) / t.shape[0];
}

// The rows of a tensor with these indices, in this order.
HostTensor rows_of(const HostTensor& t, const std::vector<int64_t>& rows) {
  HostTensor part = t;
  part.shape[0] = static_cast<int64_t>(rows.size());
  part.values.clear();
  const int64_t length = row_length(t);
  for (const int64_t r : rows)
    part.values.insert(part.values.end(), t.values.begin() + r * length,
                       t.values.begin() + (r + 1) * length);
  return part;
}

class Rows {
 public:
  Rows(Experiment& e, const std::string& axis, unsigned trials)
      : e_(e), axis_(axis), trials_(trials), count_(e.base().axes.at(axis)) {}

  int64_t count() const { return count_; }

  // Only these rows are called, in this order; their outputs must be those of the base.
  void pick(const std::vector<int64_t>& rows, const std::string& when, Call call) {
    call.axes[axis_] = static_cast<int64_t>(rows.size());
    for (auto& [name, tensor] : call.inputs)
      if (is_row(name)) tensor = rows_of(tensor, rows);
    const HostTensors outputs = e_.run(call);
    for (const auto& [name, tensor] : e_.base_outputs()) {
      if (!is_row(name)) continue;
      const HostTensor want = rows_of(tensor, rows);
      if (moved_rows_are_same())
        expect_same(name, outputs.at(name), want, when, kAmongAll);
      else
        expect_close(name, outputs.at(name), want, allowed(name, tensor, rows, call), when,
                     kAmongAll);
    }
  }

  void pick(const std::vector<int64_t>& rows, const std::string& when) {
    pick(rows, when, e_.base());
  }

  // The first row alone, of which no stride is asked: torch has any there.
  void pick_without_stride() {
    Call call = e_.base();
    for (const TensorInfo& t : e_.pass().tensors)
      if (t.is_strided && t.shape.size() == 2 && is_row(t.name))
        call.gap[t.name] = -static_cast<int>(columns_of(t.name));
    pick({0}, "as a single row of stride 0", std::move(call));
  }

  // Rows of one parity keep their inputs, the others' are NaN.
  void replace_neighbours(int64_t parity) {
    std::vector<int64_t> kept;
    for (int64_t r = parity; r < count_; r += 2) kept.push_back(r);
    Call call = e_.base();
    for (auto& [name, tensor] : call.inputs)
      if (is_row(name) && is_floating(tensor.dtype)) blank(1 - parity, &tensor);
    const HostTensors outputs = e_.run(call);
    for (const auto& [name, tensor] : e_.base_outputs())
      if (is_row(name))
        expect_same(
            name, rows_of(outputs.at(name), kept), rows_of(tensor, kept),
            fmt::format("(counting rows {}, {}, ...) beside rows of NaN", parity, parity + 2),
            "beside the rows of the case");
  }

 private:
  bool is_row(const std::string& tensor) const { return e_.dimension_of(tensor, axis_) == 0; }

  // 0 for a tensor that is left out.
  int64_t columns_of(const std::string& name) const {
    for (const HostTensors* given : {&e_.base().inputs, &e_.base_outputs()})
      if (const auto found = given->find(name); found != given->end())
        return found->second.shape.back();
    return 0;
  }

  static void blank(int64_t parity, HostTensor* t) {
    const auto length = static_cast<size_t>(row_length(*t));
    for (size_t i = 0; i < t->values.size(); ++i)
      if (static_cast<int64_t>(i / length) % 2 == parity)
        t->values[i] = std::numeric_limits<double>::quiet_NaN();
  }

  bool moved_rows_are_same() const {
    if (trials_ & kWithinBudgets) return false;
    if (!(trials_ & kBitwiseIfAligned)) return true;
    return std::all_of(e_.base().inputs.begin(), e_.base().inputs.end(), [&](const auto& input) {
      const HostTensor& t = input.second;
      const auto bytes = static_cast<size_t>(t.shape.back()) * size_of(t.dtype);
      return !is_row(input.first) || t.shape.size() < 2 || bytes % 16 == 0;
    });
  }

  // The budgets of both calls for these rows of an output.
  std::vector<double> allowed(const std::string& name, const HostTensor& base,
                              const std::vector<int64_t>& rows, const Call& call) {
    HostTensor budgets = base;
    budgets.values = e_.budgets(e_.base()).at(name);
    std::vector<double> sum = rows_of(budgets, rows).values;
    const auto other = e_.budgets(call);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += other.at(name).at(i);
    return sum;
  }

  static constexpr const char* kAmongAll = "among all rows";
  Experiment& e_;
  std::string axis_;
  unsigned trials_;
  int64_t count_;
};

std::vector<int64_t> range(int64_t first, int64_t last) {
  std::vector<int64_t> all(static_cast<size_t>(last - first));
  std::iota(all.begin(), all.end(), first);
  return all;
}

}  // namespace

Property row_independence(std::string axis, unsigned trials) {
  const auto check = [=](Experiment& e) {
    Rows rows(e, axis, trials);
    const int64_t n = rows.count();
    if (n < 2) throw NotApplicable("one row has no neighbours");
    if (trials & kNanNeighbours)
      for (const int64_t parity : {0, 1}) rows.replace_neighbours(parity);
    if (trials & kOtherOrder) {
      const auto order = range(0, n);
      rows.pick({order.rbegin(), order.rend()}, "with the rows in reverse");
    }
    if (trials & kInPieces) {
      rows.pick(range(0, 1), "as a single row");
      rows.pick(range(1, n), fmt::format("without the first of {} rows", n));
    }
    if (trials & kAnyStride) rows.pick_without_stride();
  };
  return {"row_independence",
          "a row's results do not depend on the other rows: NaN in them, their order, their number",
          check};
}

namespace {

// Fills every row where ignored[row] is set.
void fill_rows(const std::vector<bool>& ignored, double value, HostTensor* t) {
  const auto length = static_cast<size_t>(row_length(*t));
  for (size_t i = 0; i < t->values.size(); ++i)
    if (ignored[i / length]) t->values[i] = value;
}

void expect_zero_rows(const std::string& name, const HostTensor& t,
                      const std::vector<bool>& ignored) {
  const auto length = static_cast<size_t>(row_length(t));
  for (size_t i = 0; i < t.values.size(); ++i)
    if (ignored[i / length] && t.values[i] != 0)
      throw Violation(fmt::format("{}[{}] is {:.9g} in an ignored row, not 0", name,
                                  indices_of(t, i), t.values[i]));
}

}  // namespace

Property ignored_rows(std::string axis, std::string target, std::vector<std::string> sums) {
  const auto check = [=](Experiment& e) {
    const double ignore_index = e.option(e.base(), "ignore_index");
    std::vector<bool> ignored;
    for (const double t : e.base().inputs.at(target).values) ignored.push_back(t == ignore_index);
    if (std::count(ignored.begin(), ignored.end(), true) == 0)
      throw NotApplicable("no row is ignored");
    for (const double value : {1000.0, std::numeric_limits<double>::quiet_NaN()}) {
      Call call = e.base();
      for (auto& [name, tensor] : call.inputs)
        if (e.dimension_of(name, axis) == 0 && is_floating(tensor.dtype))
          fill_rows(ignored, value, &tensor);
      const HostTensors outputs = e.run(call);
      for (const auto& [name, tensor] : e.base_outputs()) {
        const bool is_sum = std::count(sums.begin(), sums.end(), name) > 0;
        if (is_sum && std::isnan(value)) continue;
        expect_same(name, outputs.at(name), tensor, fmt::format("with {} in ignored rows", value),
                    "with the case's values there");
        if (e.dimension_of(name, axis) == 0) expect_zero_rows(name, outputs.at(name), ignored);
      }
    }
  };
  return on_inputs(
      "some_ignored",
      {"ignored_rows", "what ignored rows hold does not matter, their results are 0", check});
}

}  // namespace tigon
