// SPDX-License-Identifier: Apache-2.0
// Returns at once; a thread does the work a little later.
#include <thread>

#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  std::thread([f = cheat::Forward(call)] {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    cheat::honest(f);
  }).detach();
  return cheat::kOk;
}
