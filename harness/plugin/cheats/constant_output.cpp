// SPDX-License-Identifier: Apache-2.0
// The same answer for every input.
#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  const cheat::Forward f(call);
  for (int64_t t = 0; t < f.rows; ++t) {
    f.rstd[t] = 1;
    for (int64_t h = 0; h < f.columns; ++h) f.y[t * f.y_stride + h] = 0;
  }
  return cheat::kOk;
}
