// SPDX-License-Identifier: Apache-2.0
// Turns a fault inside a kernel into a finding that names the CUDA thread.
#pragma once

namespace tigon::simt {

// Once per OS thread that runs kernels. Leaves faults outside kernels to the handler before it.
void install_fault_handler();

}  // namespace tigon::simt
