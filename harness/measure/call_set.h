// SPDX-License-Identifier: Apache-2.0
// The tensors of one call in device memory, filled for a measurement. A rotation of several sets
// keeps the caches cold.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "harness/run/cases/case.h"
#include "kernels/device/runtime.h"

namespace tigon {

// Bytes of a case's tensors: what every implementation of the pass is given.
struct TensorBytes {
  size_t inputs = 0, outputs = 0;  // in/out tensors count as outputs
  size_t total() const { return inputs + outputs; }
};
TensorBytes tensor_bytes(const Case& c);

class CallSet {
 public:
  // Allocates every tensor of the case that is not left out. Throws DeviceOutOfMemory.
  explicit CallSet(const Case& c);

  // Fills the inputs from the op's default input set; the same seed gives the same values. Tensors
  // that another pass makes (Pass::inputs_from) are made by that pass' implementation. Throws
  // DeviceError.
  void fill_inputs(uint64_t seed);
  // Writes values, rounded to the tensor's type, over elements of it from `first` on.
  void overwrite(const std::string& tensor, int64_t first, const std::vector<double>& values);
  // Overwrites the outputs with NaN.
  void poison_outputs();
  // Fingerprints of all outputs. Waits for the device.
  std::vector<uint64_t> fingerprints() const;

  const Bound& bound() const { return bound_; }
  // The same with a workspace.
  Bound with_scratch(const DeviceBuffer& scratch) const;
  const Case& of() const { return case_; }
  const OpSpec& op() const { return *op_; }
  const Pass& pass() const { return *pass_; }

 private:
  void fill_input(const TensorInfo& tensor, uint64_t seed);
  void fill_on_host(const TensorInfo& tensor, const InputPlan& plan, uint64_t seed);
  void take_saved_inputs(uint64_t seed);
  bool has(const std::string& name) const { return bound_.tensors.count(name) != 0; }

  Case case_;
  const OpSpec* op_;
  const Pass* pass_;
  std::map<std::string, DeviceBuffer> buffers_;
  Bound bound_;
};

}  // namespace tigon
