// Returns at once; a thread launches the work a little later.
#include <thread>

#include "harness/plugin/cheats/cuda/cheat_cuda.h"

int32_t cheat_run(const tigon_call* call, const char**) {
  std::thread([f = cheat::Forward(call), stream = cheat::stream_of(call)] {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    cheat::start(f, stream);
  }).detach();
  return TIGON_OK;
}
