// Planted faults: switches in the kernels' own source, where the bug would be, by which the harness
// shows that it catches such a bug (harness/mutants lists them).
//
//   const float scale = planted("rms_norm.mean_missing") ? 1.0f : inverse_n;
//
// planted() is the constant false in a product build and leaves no code there. With TIGON_MUTANTS
// (the libraries tigon_<op>_mutant) it tells whether plant() of mutant_switch.h chose that fault
// for this process. It works in kernels and in launchers. Every name occurs in harness/mutants and
// the other way round; a test compares. Names are <op or file>.<fault>.
#pragma once
#include <cstdint>

#include "kernels/device/platform.h"

namespace tigon {

// The hash of a fault's name, so that a kernel compares one number.
struct FaultId {
  uint32_t value = 0;  // 0: none

  TIGON_HOST_DEVICE static constexpr uint32_t hash(const char* name) {
    uint32_t h = 2166136261u;  // FNV-1a
    for (; *name != '\0'; ++name) h = (h ^ static_cast<unsigned char>(*name)) * 16777619u;
    return h;
  }
  TIGON_HOST_DEVICE consteval FaultId(const char* name) : value(hash(name)) {}
};

#if !defined(TIGON_MUTANTS)

TIGON_HOST_DEVICE constexpr bool planted(FaultId) { return false; }

#else

namespace device {

// Out of line and never instrumented: what it reads is not memory of the kernel.
uint32_t fault_of_host();

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
  return device::fault_of_host() == id.value;
#endif
}

#endif

}  // namespace tigon
