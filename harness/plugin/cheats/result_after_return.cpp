// SPDX-License-Identifier: Apache-2.0
// Writes something plausible, returns, and puts the right values in afterwards.
#include <thread>

#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  const cheat::Forward f(call);
  for (int64_t t = 0; t < f.rows; ++t) {
    f.rstd[t] = 1;
    for (int64_t h = 0; h < f.columns; ++h) f.y[t * f.y_stride + h] = f.x[t * f.x_stride + h];
  }
  std::thread([f] {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    cheat::honest(f);
  }).detach();
  return cheat::kOk;
}
