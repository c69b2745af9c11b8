// SPDX-License-Identifier: Apache-2.0
// Writes one element too many.
#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  const cheat::Forward f(call);
  cheat::honest(f);
  if (f.rows > 0) f.y[(f.rows - 1) * f.y_stride + f.columns] = 0;
  return cheat::kOk;
}
