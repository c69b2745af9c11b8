// SPDX-License-Identifier: Apache-2.0
// A tigon_call on its way to a worker. What it points to lies in shared memory, so an address is a
// distance from the start of that. In Python its other end is tigon_call.py.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "harness/json/json.h"
#include "kernels/call/tigon.h"

namespace tigon::worker {

struct SharedTensor {
  size_t at = 0;
  int32_t dtype = 0;
  std::vector<int64_t> sizes, strides;
};

struct SharedCall {
  std::vector<std::optional<SharedTensor>> tensors;  // all of the op; nothing: left out
  std::vector<tigon_option> options;                 // that differ from their defaults
  size_t scratch_at = 0, scratch_bytes = 0;
};

Json to_json(const SharedCall& call);
SharedCall shared_call_of(const Json& json);

// The same as a library in a worker gets it.
class MappedCall {
 public:
  // `memory`: where the shared memory, or its mirror, begins here.
  MappedCall(SharedCall call, char* memory);
  MappedCall(const MappedCall&) = delete;
  MappedCall& operator=(const MappedCall&) = delete;

  const tigon_call* get() const { return &call_; }

 private:
  SharedCall shared_;
  std::vector<tigon_tensor> tensors_;
  tigon_call call_ = {};
};

}  // namespace tigon::worker
