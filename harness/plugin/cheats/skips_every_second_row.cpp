// SPDX-License-Identifier: Apache-2.0
// Half of the work once it has been checked: every second row keeps what the call before left in a
// buffer of its own.
#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  static int calls = 0;
  static cheat::Answer last;
  const cheat::Forward f(call);
  ++calls;
  const bool half = calls > 4 && !last.y.empty();
  if (half) last.give(f);
  for (int64_t t = 0; t < f.rows; t += half ? 2 : 1) cheat::honest_row(f, t);
  last.take(f);
  return cheat::kOk;
}
