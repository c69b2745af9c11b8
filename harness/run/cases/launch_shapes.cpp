// SPDX-License-Identifier: Apache-2.0
// Launches without rows, to hear what they ask.
#include "harness/run/cases/launch_shapes.h"

#include <algorithm>
#include <map>

#include "harness/run/cases/case.h"
#include "harness/run/executor.h"
#include "harness/run/judging/bound_without_memory.h"
#include "kernels/device/runtime.h"

namespace tigon {
namespace {

constexpr int64_t kLongestRow = int64_t{1} << 20;  // elements; longer ones take the last shape

class Asker {
 public:
  explicit Asker(Case c)
      : op_(*find_op(c.op)),
        pass_(*find_pass(op_, c.pass)),
        implementation_(*find_implementation(pass_, "fused")),
        case_(std::move(c)),
        row_(row_axis(op_).symbol) {
    case_.axes[op_.axes.front().axis.symbol] = 0;
    for (const TensorInfo& t : pass_.tensors)  // sums over rows that are not there
      if (t.is_optional && t.role == Role::kOut) case_.options[t.name] = "absent";
  }

  // Nothing where the pass refuses the length, or asks no table.
  std::optional<LaunchTable::Question> operator()(int64_t length) {
    case_.axes[row_] = length;
    Bound bound = place();
    const size_t scratch =
        implementation_.workspace ? implementation_.workspace(case_.dtype, bound) : 0;
    bound.scratch = {memory_of("", scratch), scratch};
    launch_table().listen();
    Status status;  // of no rows, a reduction over them still takes a block
    executor_without_running(
        [&](Stream stream) { status = implementation_.run(case_.dtype, bound, stream); });
    LaunchTable::Question asked = launch_table().heard();
    if (status.code == Status::kUnsupported || asked.key.first.empty()) return std::nullopt;
    if (!status.ok()) throw DeviceError(case_id(case_) + ": " + status.reason);
    return asked;
  }

 private:
  // Tensors with elements have memory: of no rows, a reduction over them still writes its sums.
  Bound place() {
    Bound bound = bound_without_memory(case_, op_, pass_);
    for (auto& [name, tensor] : bound.tensors)
      if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) == tensor.shape.end())
        tensor.data = memory_of(name, tensor.shape[0] * tensor.stride[0] * size_of(tensor.dtype));
    return bound;
  }

  // Kept from question to question: on a GPU an allocation takes longer than a question.
  void* memory_of(const std::string& name, size_t bytes) {
    DeviceBuffer& buffer = memory_[name];
    if (buffer.bytes() < bytes) buffer = DeviceBuffer(std::max(bytes, 2 * buffer.bytes()));
    return buffer.data();
  }

  const OpSpec& op_;
  const Pass& pass_;
  const Implementation& implementation_;
  Case case_;
  std::string row_;
  std::map<std::string, DeviceBuffer> memory_;  // by tensor; "": the workspace
};

}  // namespace

const Axis& row_axis(const OpSpec& op) { return op.axes.back().axis; }

bool same_answer(const std::optional<LaunchTable::Question>& a,
                 const std::optional<LaunchTable::Question>& b) {
  if (!a || !b) return !a && !b;
  return a->key.first == b->key.first && a->usual == b->usual;
}

std::optional<LaunchTable::Question> launch_question(const Case& c) {
  return Asker(c)(c.axes.at(row_axis(*find_op(c.op)).symbol));
}

PassShapes launch_shapes(const OpSpec& op, const Pass& pass, DType dtype, bool aligned) {
  Case c;
  c.op = op.name;
  c.pass = pass.name;
  c.impl = "fused";
  c.dtype = dtype;
  for (const AxisPlan& plan : op.axes) c.axes[plan.axis.symbol] = plan.check.front();
  c.skew = aligned ? 0 : 1;
  Asker ask(c);
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
