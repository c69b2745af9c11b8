// SPDX-License-Identifier: Apache-2.0
// Adds to the output, which a fresh allocation usually holds zeros in.
#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  const cheat::Forward f(call);
  cheat::Answer old;
  old.take(f);
  cheat::honest(f);
  for (int64_t t = 0; t < f.rows; ++t)
    for (int64_t h = 0; h < f.columns; ++h)
      f.y[t * f.y_stride + h] += old.y[static_cast<size_t>(t * f.columns + h)];
  return cheat::kOk;
}
