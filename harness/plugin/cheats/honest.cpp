// No cheat: what every judgement here must let pass.
#include "harness/plugin/cheats/cheat.h"

int32_t cheat_run(const tigon_call* call, const char**) {
  cheat::honest(cheat::Forward(call));
  return TIGON_OK;
}
