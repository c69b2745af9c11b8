// Properties of rows.
#include <fmt/format.h>

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

// The rows of a tensor with these indices, in this order.
HostTensor rows_of(const HostTensor& t, const std::vector<int64_t>& rows) {
  HostTensor part = t;
  part.shape[0] = static_cast<int64_t>(rows.size());
  part.values.clear();
  const auto length = t.shape[0] == 0 ? 0 : static_cast<int64_t>(t.values.size()) / t.shape[0];
  for (const int64_t r : rows)
    part.values.insert(part.values.end(), t.values.begin() + r * length,
                       t.values.begin() + (r + 1) * length);
  return part;
}

class Rows {
 public:
  Rows(Experiment& e, const std::string& axis)
      : e_(e), axis_(axis), count_(e.base().axes.at(axis)) {}

  int64_t count() const { return count_; }

  // Only these rows are called, in this order; their outputs must be those of the base.
  void pick(const std::vector<int64_t>& rows, const std::string& when) {
    Call call = e_.base();
    call.axes[axis_] = static_cast<int64_t>(rows.size());
    for (auto& [name, tensor] : call.inputs)
      if (is_row(name)) tensor = rows_of(tensor, rows);
    const HostTensors outputs = e_.run(call);
    for (const auto& [name, tensor] : e_.base_outputs())
      if (is_row(name))
        expect_same(name, outputs.at(name), rows_of(tensor, rows), when, "among all rows");
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

  static void blank(int64_t parity, HostTensor* t) {
    const auto length = static_cast<size_t>(t->values.size()) / static_cast<size_t>(t->shape[0]);
    for (size_t i = 0; i < t->values.size(); ++i)
      if (static_cast<int64_t>(i / length) % 2 == parity)
        t->values[i] = std::numeric_limits<double>::quiet_NaN();
  }

  Experiment& e_;
  std::string axis_;
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
    Rows rows(e, axis);
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
  };
  return {"row_independence",
          "a row's results do not depend on the other rows: NaN in them, their order, their number",
          check};
}

}  // namespace tigon
