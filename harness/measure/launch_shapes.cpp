// SPDX-License-Identifier: Apache-2.0
// Launches without rows, to hear what they ask.
#include "harness/measure/launch_shapes.h"

#include <algorithm>
#include <optional>

#include "harness/measure/call_set.h"
#include "harness/run/cases/case.h"

namespace tigon {
namespace {

constexpr int64_t kLongestRow = int64_t{1} << 20;  // elements; longer ones take the last shape

class Asker {
 public:
  Asker(const OpSpec& op, const Pass& pass, DType dtype, bool aligned)
      : implementation_(*find_implementation(pass, "fused")), aligned_(aligned) {
    case_.op = op.name;
    case_.pass = pass.name;
    case_.impl = "fused";
    case_.dtype = dtype;
    for (const AxisPlan& plan : op.axes) case_.axes[plan.axis.symbol] = plan.check.front();
    case_.axes[op.axes.front().axis.symbol] = 0;
    row_ = row_axis(op).symbol;
    for (const TensorInfo& t : pass.tensors)  // sums over rows that are not there
      if (t.is_optional && t.role == Role::kOut) case_.options[t.name] = "absent";
  }

  // Nothing where the pass refuses the length, or asks no table.
  std::optional<LaunchTable::Question> operator()(int64_t length) {
    case_.axes[row_] = length;
    const CallSet set(case_);
    Bound bound = set.bound();
    place_empty_tensors(&bound);
    const DeviceBuffer scratch(
        implementation_.workspace ? implementation_.workspace(case_.dtype, bound) : 0);
    bound.scratch = {scratch.data(), scratch.bytes()};
    launch_table().listen();
    const Status status = implementation_.run(case_.dtype, bound, nullptr);
    LaunchTable::Question asked = launch_table().heard();
    device_synchronize();
    if (status.code == Status::kUnsupported || asked.key.first.empty()) return std::nullopt;
    if (!status.ok()) throw DeviceError(case_id(case_) + ": " + status.reason);
    return asked;
  }

 private:
  // They have addresses that nobody follows: all at multiples of 16 bytes, or each elsewhere.
  void place_empty_tensors(Bound* bound) const {
    uintptr_t address = 4096;
    for (auto& [name, tensor] : bound->tensors) {
      if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) == tensor.shape.end()) continue;
      tensor.data = reinterpret_cast<void*>(address);
      address += aligned_ ? 16 : size_of(tensor.dtype);
    }
  }

  Case case_;
  std::string row_;
  const Implementation& implementation_;
  bool aligned_;
};

bool same_answer(const std::optional<LaunchTable::Question>& a,
                 const std::optional<LaunchTable::Question>& b) {
  if (!a || !b) return !a && !b;
  return a->key.first == b->key.first && a->usual == b->usual;
}

}  // namespace

const Axis& row_axis(const OpSpec& op) { return op.axes.back().axis; }

PassShapes launch_shapes(const OpSpec& op, const Pass& pass, DType dtype, bool aligned) {
  Asker ask(op, pass, dtype, aligned);
  const int64_t step = 2 * 16 / static_cast<int64_t>(size_of(dtype));  // two halves in vectors
  const int64_t most = kLongestRow / step;
  PassShapes found;
  for (int64_t first = 1; first <= most;) {
    const auto answer = ask(first * step);
    int64_t last = first, stride = 1;  // the answer holds for `last` steps, at least
    while (last + stride <= most && same_answer(answer, ask((last + stride) * step))) {
      last += stride;
      stride *= 2;
    }
    for (; stride > 0; stride /= 2)
      if (last + stride <= most && same_answer(answer, ask((last + stride) * step))) last += stride;
    if (answer) {
      found.ranges.push_back(
          {answer->key.first, (first - 1) * step + 1, last * step, answer->usual, last == most});
      for (const LaunchShape& other : answer->others)
        if (std::find(found.others.begin(), found.others.end(), other) == found.others.end())
          found.others.push_back(other);
    }
    first = last + 1;
  }
  std::erase_if(found.others, [&](const LaunchShape& other) {
    return std::any_of(found.ranges.begin(), found.ranges.end(),
                       [&](const ShapeRange& r) { return r.shape == other; });
  });
  return found;
}

}  // namespace tigon
