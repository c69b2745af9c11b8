// SPDX-License-Identifier: Apache-2.0
// The chosen fault of a process without a GPU.
#include "harness/mutants/planted.h"
#include "harness/mutants/switch.h"

namespace tigon {

namespace {
uint32_t chosen = 0;  // set between launches, when no kernel runs
}

void plant(const char* name) { chosen = *name == '\0' ? 0 : FaultId::hash(name); }

uint32_t device::fault_of_host() { return chosen; }

}  // namespace tigon
