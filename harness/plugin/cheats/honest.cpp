// SPDX-License-Identifier: Apache-2.0
// No cheat: what every judgement here must let pass.
#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  cheat::honest(cheat::Forward(call));
  return cheat::kOk;
}
