// SPDX-License-Identifier: Apache-2.0
// Timed calls of a plug-in kernel in a fresh process: new contents in the same memory for each
// call, our clock, and outputs that are taken at return.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "harness/measure/call_set.h"
#include "harness/plugin/proxy.h"

namespace tigon::plugin {

class TimedKernel {
 public:
  // Throws ImplementationFault, DeviceError, DeviceOutOfMemory.
  TimedKernel(const std::string& library, const KernelOf& kernel, const Case& c);

  struct Sample {
    double seconds = 0;                  // less what an empty call costs
    uint64_t fingerprint = 0;            // of all outputs
    RemoteCall::Packed inputs, outputs;  // where asked for
  };
  // One call on the inputs of this seed over poisoned outputs, caches cold. Throws
  // ImplementationFault for results after return, changed inputs and bad statuses.
  Sample call(uint64_t seed, bool keeps_tensors);

  double overhead() const { return process_->overhead(); }
  void measure_overhead_again() { process_->measure_overhead_again(); }
  size_t workspace_bytes() const { return scratch_.bytes(); }

 private:
  std::shared_ptr<PluginProcess> process_;
  Proxy proxy_;
  CallSet set_;
  DeviceBuffer scratch_;
  Bound bound_;
  RemoteCall call_;
};

}  // namespace tigon::plugin
