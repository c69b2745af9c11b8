// SPDX-License-Identifier: Apache-2.0
// The run-time switch of planted faults. Only mutated sources include it; tigon-mutate writes them:
//
//   const float scale = (::tigon::planted("rms_norm.mean_missing") ? (1.0f) : (inverse_n));
//
// planted() tells whether plant() of switch.h chose that fault for this process. It works in
// kernels and in launchers.
#pragma once
#include <cstdint>

#include "harness/mutants/fault_id.h"
#include "kernels/device/platform.h"

namespace tigon {

namespace device {

// Out of line and never instrumented: what it reads is not memory of the kernel.
bool is_planted(uint32_t fault);

#if TIGON_GPU
// Each file of kernels is a module of its own, with its own variable.
static __device__ uint32_t fault_of_module;
void add_fault_symbol(const void* symbol);
struct FaultSymbol {
  FaultSymbol() { add_fault_symbol(&fault_of_module); }
};
static const FaultSymbol fault_symbol;
#endif

}  // namespace device

TIGON_HOST_DEVICE bool planted(FaultId id) {
#if defined(__CUDA_ARCH__)
  return device::fault_of_module == id.value;
#else
  return device::is_planted(id.value);
#endif
}

}  // namespace tigon
