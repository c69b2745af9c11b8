// SPDX-License-Identifier: Apache-2.0
// The launch table of this machine, and of no other.
#pragma once
#include <string>

namespace tigon::cli {

// The GPU, or "host executor on" the processor.
std::string machine_name();

// Says on stderr which shapes the kernels will take from the file that TIGON_LAUNCH_TABLE names, if
// it is set. Throws UsageError when the file was made on another machine.
void examine_machine_table();

}  // namespace tigon::cli
