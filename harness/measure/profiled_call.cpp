// SPDX-License-Identifier: Apache-2.0
// The one call of a case that a profiler sees.
#include "harness/measure/profiled_call.h"

#include <stdexcept>
#include <string>

#include "harness/measure/timing.h"

namespace tigon {

void profiled_call(const Case& c) {
  CallSet set(c);
  set.fill_inputs(c.seed);
  const Implementation& implementation =
      *find_implementation(*find_pass(*find_op(c.op), c.pass), c.impl);
  const DeviceBuffer scratch(
      implementation.workspace ? implementation.workspace(c.dtype, set.bound()) : 0);
  const Bound bound = set.with_scratch(scratch);
  const auto require = [](const Status& status) {
    if (!status.ok())
      throw std::runtime_error(std::string("the implementation refuses: ") + status.reason);
  };
  if (implementation.prepare) require(implementation.prepare(c.dtype, bound));
  require(implementation.run(c.dtype, bound, nullptr));
  stream_synchronize(nullptr);
  profiler_start();
  require(implementation.run(c.dtype, bound, nullptr));
  stream_synchronize(nullptr);
  profiler_stop();
}

}  // namespace tigon
