// SPDX-License-Identifier: Apache-2.0
// Ends the process with exit code 0, which some runners take for success.
#include <cstdlib>

#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call*, void*) { std::exit(0); }
