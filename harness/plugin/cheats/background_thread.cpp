// Returns at once; a thread does the work a little later.
#include <thread>

#include "harness/plugin/cheats/cheat.h"

int32_t cheat_run(const tigon_call* call, const char**) {
  std::thread([f = cheat::Forward(call)] {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    cheat::honest(f);
  }).detach();
  return TIGON_OK;
}
