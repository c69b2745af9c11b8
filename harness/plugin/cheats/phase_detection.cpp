// SPDX-License-Identifier: Apache-2.0
// Honest as long as it is being checked, which the number of calls tells; afterwards one row only.
#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  static int calls = 0;
  const cheat::Forward f(call);
  if (++calls <= 4)
    cheat::honest(f);
  else if (f.rows > 0)
    cheat::honest_row(f, 0);
  return cheat::kOk;
}
