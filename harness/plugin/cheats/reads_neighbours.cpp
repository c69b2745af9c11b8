// SPDX-License-Identifier: Apache-2.0
// Looks for the reference's answer in the memory around its own tensors and copies what is there.
#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  const cheat::Forward f(call);
  const float* behind = f.y + f.rows * f.y_stride;
  for (int64_t t = 0; t < f.rows; ++t) {
    f.rstd[t] = behind[t];
    for (int64_t h = 0; h < f.columns; ++h) f.y[t * f.y_stride + h] = behind[t * f.columns + h];
  }
  return cheat::kOk;
}
