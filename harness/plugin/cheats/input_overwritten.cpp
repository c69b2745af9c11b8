// SPDX-License-Identifier: Apache-2.0
// Sets the input to 0, for which the answer is 0: a reference that runs afterwards agrees.
#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  const cheat::Forward f(call);
  for (int64_t t = 0; t < f.rows; ++t)
    for (int64_t h = 0; h < f.columns; ++h) const_cast<float&>(f.x[t * f.x_stride + h]) = 0;
  cheat::honest(f);
  return cheat::kOk;
}
