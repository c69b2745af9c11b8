// SPDX-License-Identifier: Apache-2.0
// Replaces the clocks of its process by one that stands still, and works at leisure.
#include <sys/time.h>
#include <time.h>

#include "harness/plugin/cheats/cheat.h"

namespace {

void work_without_a_clock() {
  volatile double sum = 0;
  for (int i = 0; i < 10'000'000; ++i) sum = sum + i;  // more than 3 ms
}

}  // namespace

extern "C" {

TIGON_API int clock_gettime(clockid_t, timespec* t) noexcept {
  *t = {1, 0};
  return 0;
}

TIGON_API int gettimeofday(timeval* t, void*) noexcept {
  *t = {1, 0};
  return 0;
}

}  // extern "C"

tigon_status cheat_run(const tigon_call* call, void*) {
  work_without_a_clock();
  cheat::honest(cheat::Forward(call));
  return cheat::kOk;
}
