// SPDX-License-Identifier: Apache-2.0
// The harness' memory and values as a call of tigon.h. Options of default values are left out, as
// callers do, so that what a library takes for them is checked.
#pragma once
#include <vector>

#include "harness/spec/op_spec.h"
#include "kernels/call/pass_info.h"
#include "kernels/call/tigon.h"

namespace tigon {

// Refers to its arguments; they must outlive it.
class BoundCall {
 public:
  BoundCall(const call::PassInfo& pass, const Bound& bound);
  BoundCall(const BoundCall&) = delete;
  BoundCall& operator=(const BoundCall&) = delete;
  const tigon_call& get() const { return call_; }

 private:
  std::vector<tigon_tensor> tensors_;
  std::vector<tigon_option> options_;
  tigon_call call_;
};

}  // namespace tigon
