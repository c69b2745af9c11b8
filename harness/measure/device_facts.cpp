// SPDX-License-Identifier: Apache-2.0
// What device this program runs on.
#include "harness/measure/device_facts.h"

#include <fmt/format.h>

#include "harness/measure/run_in_child.h"
#include "kernels/device/runtime.h"

namespace tigon {
namespace {

constexpr double kSilenceS = 60;  // a GPU's first use may take several seconds

Json block_of(const DeviceInfo& info) {
  Json block = {{"kind", info.kind},
                {"name", info.name},
                {"sm_count", info.sm_count},
                {"l2_bytes", info.l2_bytes},
                {"memory_bytes", info.memory_bytes}};
  if (info.kind != "cuda") return block;
  block["uuid"] = info.uuid;
  block["compute_capability"] = fmt::format("{}.{}", info.compute_major, info.compute_minor);
  block["driver"] = info.driver_version;
  block["runtime"] = info.runtime_version;
  return block;
}

}  // namespace

Json device_block() {
  Json block;
  const WorkerEnd end = run_in_child([](const Emit& emit) { emit(block_of(device_info())); },
                                     [&](const Json& line) { block = line; }, kSilenceS);
  if (end.kind == WorkerEnd::kInterrupted) return {{"kind", "host"}};
  if (end.kind != WorkerEnd::kDone)
    throw DeviceError(fmt::format(
        "no usable GPU ({}); ./tigon --device host runs the kernels on this CPU", end.reason));
  return block;
}

}  // namespace tigon
