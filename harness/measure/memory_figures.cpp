// SPDX-License-Identifier: Apache-2.0
// Peak memory of one call in four figures.
#include "harness/measure/memory_figures.h"

#include <algorithm>
#include <map>
#include <string>

#include "harness/measure/host_memory.h"
#include "harness/run/check.h"

namespace tigon {
namespace {

std::map<std::string, std::string> axis_meanings(const std::string& op) {
  std::map<std::string, std::string> meanings;
  if (const OpSpec* spec = find_op(op))
    for (const AxisPlan& plan : spec->axes) meanings[plan.axis.symbol] = plan.axis.meaning;
  return meanings;
}

}  // namespace

Json case_fields(const Case& c) {
  return {
      {"case_id", case_id(c)}, {"case_key", case_key(c)}, {"op", c.op},
      {"pass", c.pass},        {"impl", c.impl},          {"dtype", name_of(c.dtype)},
      {"axes", c.axes},        {"options", c.options},    {"axis_meanings", axis_meanings(c.op)}};
}

Status memory_figures(const Case& c, const Implementation& implementation, const CallSet& set,
                      Json* record) {
  const bool on_gpu = default_executor() == "cuda";
  const size_t workspace =
      implementation.workspace ? implementation.workspace(c.dtype, set.bound()) : 0;
  const size_t before = device_memory_stats().current;
  const auto free_before = static_cast<int64_t>(device_free_bytes());
  int64_t free_least = free_before;
  const HostPeak peak;
  device_memory_reset_high_water();
  {
    const DeviceBuffer scratch(workspace);
    const Bound bound = set.with_scratch(scratch);
    Status status = implementation.prepare ? implementation.prepare(c.dtype, bound) : Status{};
    if (status.ok()) status = implementation.run(c.dtype, bound, nullptr);
    free_least = std::min(free_least, static_cast<int64_t>(device_free_bytes()));
    device_synchronize();
    free_least = std::min(free_least, static_cast<int64_t>(device_free_bytes()));
    if (!status.ok()) return status;
  }
  const TensorBytes tensors = tensor_bytes(c);
  const std::optional<int64_t> host = on_gpu ? std::nullopt : peak.growth_bytes();
  *record = case_fields(c);
  (*record)["tensors_bytes"] = tensors.total();
  (*record)["workspace_bytes"] = workspace;
  (*record)["planned_bytes"] = tensors.outputs + workspace;
  (*record)["arena_bytes"] = device_memory_stats().high_water - before;
  (*record)["device_bytes"] = on_gpu ? Json(free_before - free_least) : Json(nullptr);
  (*record)["host_bytes"] = host ? Json(*host) : Json(nullptr);
  return {};
}

}  // namespace tigon
