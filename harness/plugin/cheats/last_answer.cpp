// SPDX-License-Identifier: Apache-2.0
// Gives the answer of the call before; the test usually calls twice with the same inputs.
#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  static cheat::Answer last;
  const cheat::Forward f(call);
  cheat::honest(f);
  cheat::Answer now;
  now.take(f);
  if (!last.y.empty()) last.give(f);
  last = now;
  return cheat::kOk;
}
