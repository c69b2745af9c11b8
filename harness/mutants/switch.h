// SPDX-License-Identifier: Apache-2.0
// Chooses the planted fault of this process; see planted.h. Of the library tigon_mutant_switch.
#pragma once
#include <cstdint>
#include <vector>

namespace tigon {

// `name` of a fault, "" for none; on a GPU for the current device. Throws std::runtime_error when
// the device cannot be told.
void plant(const char* name);

// The faults whose places this process has passed since it was asked last, by FaultId. It notes
// them while none is planted, and none where kernels run on a GPU.
std::vector<uint32_t> take_reached();

}  // namespace tigon
