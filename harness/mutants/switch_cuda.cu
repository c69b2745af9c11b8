// SPDX-License-Identifier: Apache-2.0
// The chosen fault of a process with a GPU: launchers read it here, kernels in their module.
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/mutants/planted.h"
#include "harness/mutants/switch.h"

namespace tigon {

namespace {

uint32_t chosen = 0;

std::vector<const void*>& symbols() {
  static std::vector<const void*> all;  // filled before main
  return all;
}

}  // namespace

void device::add_fault_symbol(const void* symbol) { symbols().push_back(symbol); }

bool device::is_planted(uint32_t fault) { return fault == chosen; }

std::vector<uint32_t> take_reached() { return {}; }

void plant(const char* name) {
  chosen = *name == '\0' ? 0 : FaultId::hash(name);
  int set = 0;
  for (const void* symbol : symbols()) {
    const cudaError_t error = cudaMemcpyToSymbol(symbol, &chosen, sizeof chosen);
    set += error == cudaSuccess;
    if (error == cudaSuccess) continue;
    (void)cudaGetLastError();  // not sticky
    // A file that asks in launchers only has no such variable on the device.
    if (error != cudaErrorInvalidSymbol)
      throw std::runtime_error(std::string("cannot plant a fault: ") + cudaGetErrorString(error));
  }
  if (set == 0) throw std::runtime_error("cannot plant a fault: no kernel has the switch");
}

}  // namespace tigon
