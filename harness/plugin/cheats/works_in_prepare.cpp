// Does the work where nobody measures: prepare computes, run copies.
#include "harness/plugin/cheats/cheat.h"

namespace {

cheat::Answer& prepared() {
  static cheat::Answer answer;
  return answer;
}

}  // namespace

int32_t cheat_prepare(const tigon_call* call, const char**) {
  const cheat::Forward f(call);
  cheat::honest(f);
  prepared().take(f);
  return TIGON_OK;
}

int32_t cheat_run(const tigon_call* call, const char**) {
  const cheat::Forward f(call);
  if (!prepared().y.empty()) prepared().give(f);
  return TIGON_OK;
}
