// SPDX-License-Identifier: Apache-2.0
// Keeps the width of its first call: made for one size.
#include <algorithm>

#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  static int64_t columns = 0;
  cheat::Forward f(call);
  if (columns == 0) columns = f.columns;
  f.columns = std::min(columns, f.columns);
  cheat::honest(f);
  return cheat::kOk;
}
