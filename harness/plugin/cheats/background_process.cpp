// SPDX-License-Identifier: Apache-2.0
// Returns at once; a process that shares the memory does the work a little later.
#include <unistd.h>

#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  const cheat::Forward f(call);
  if (fork() == 0) {
    usleep(500);
    cheat::honest(f);
    usleep(100000);
    _exit(0);
  }
  return cheat::kOk;
}
