// SPDX-License-Identifier: Apache-2.0
// Does nothing, and hopes that the right answer is still in the output.
#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call*, void*) { return cheat::kOk; }
