// SPDX-License-Identifier: Apache-2.0
// Chooses the planted fault of this process; see planted.h. Of the library tigon_mutant_switch.
#pragma once

namespace tigon {

// `name` of a fault, "" for none; on a GPU for the current device. Throws std::runtime_error when
// the device cannot be told.
void plant(const char* name);

}  // namespace tigon
