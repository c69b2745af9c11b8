// SPDX-License-Identifier: Apache-2.0
// Which kernels a case launches.
#include "harness/run/judging/launches.h"

#include "harness/run/executor.h"
#include "harness/run/judging/bound_without_memory.h"
#include "harness/run/judging/chosen_launch.h"
#include "harness/run/memory/stop.h"

namespace tigon {

std::vector<std::string> launches_of(const Case& c) {
  const OpSpec& op = *find_op(c.op);
  const Pass& pass = *find_pass(op, c.pass);
  const Implementation& fused = *find_implementation(pass, "fused");
  if (!options_fit(op, pass, c)) return {};
  try {
    const ChosenLaunch launch(c);
    Bound bound = bound_without_memory(c, op, pass);
    if (fused.workspace) bound.scratch.bytes = fused.workspace(c.dtype, bound);
    executor_take_launched();
    executor_without_running([&](Stream stream) { fused.run(c.dtype, bound, stream); });
    return executor_take_launched();
  } catch (const Stop&) {
    return {};  // it has no such launch shape
  }
}

}  // namespace tigon
