// The launch table of this machine, and of no other.
#pragma once
#include <string>

namespace tigon::cli {

// The GPU, or "host executor on" the processor.
std::string machine_name();

// Lets this program and its children take the shapes of the file that TIGON_LAUNCH_TABLE names, if
// it is set, and says so on stderr. Throws UsageError when the file was made on another machine.
void use_machine_table();

}  // namespace tigon::cli
