// SPDX-License-Identifier: Apache-2.0
// Calls of which the launches are noted and not run: tensors have addresses that nobody follows.
#include "harness/run/judging/launches.h"

#include "harness/run/executor.h"
#include "harness/run/judging/chosen_launch.h"
#include "harness/run/memory/stop.h"

namespace tigon {
namespace {

constexpr uintptr_t kAlignment = 256;

// Tensors as in memory/device_case.h: off their alignment by shift and skew, rows `gap` apart.
Bound placed(const Case& c, const OpSpec& op, const Pass& pass) {
  Bound bound;
  bound.values = binding_of(c, op, pass);
  uintptr_t address = kAlignment;
  for (const TensorInfo& info : pass.tensors) {
    if (is_left_out(info, c.options)) continue;
    TensorRef ref = contiguous(info, c.dtype, bound.values);
    const size_t rank = ref.shape.size();
    if (info.is_strided && rank > 1) {
      ref.stride[rank - 2] += c.gap;
      for (size_t d = rank - 2; d-- > 0;) ref.stride[d] = ref.stride[d + 1] * ref.shape[d + 1];
    }
    const auto shift = static_cast<uintptr_t>(shift_of(c, pass, info));
    ref.data = reinterpret_cast<void*>(address + shift * size_of(ref.dtype));
    const auto bytes = static_cast<uintptr_t>(ref.shape[0] * ref.stride[0]) * size_of(ref.dtype);
    address += (bytes / kAlignment + 2) * kAlignment;
    bound.tensors[info.name] = std::move(ref);
  }
  bound.scratch.data = reinterpret_cast<void*>(address);
  return bound;
}

}  // namespace

std::vector<std::string> launches_of(const Case& c) {
  const OpSpec& op = *find_op(c.op);
  const Pass& pass = *find_pass(op, c.pass);
  const Implementation& fused = *find_implementation(pass, "fused");
  if (!options_fit(op, pass, c)) return {};
  try {
    const ChosenLaunch launch(c);
    const NotRun not_run;
    Bound bound = placed(c, op, pass);
    if (fused.workspace) bound.scratch.bytes = fused.workspace(c.dtype, bound);
    executor_take_launched();
    fused.run(c.dtype, bound, nullptr);
    return executor_take_launched();
  } catch (const Stop&) {
    return {};  // it has no such launch shape
  }
}

}  // namespace tigon
