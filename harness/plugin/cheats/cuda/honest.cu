// No cheat: what every judgement here must let pass.
#include "harness/plugin/cheats/cuda/cheat_cuda.h"

int32_t cheat_run(const tigon_call* call, const char**) {
  cheat::start(cheat::Forward(call), cheat::stream_of(call));
  return cheat::status();
}
