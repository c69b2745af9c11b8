// SPDX-License-Identifier: Apache-2.0
// Does the work where nobody measures: prepare computes, run copies.
#include "harness/plugin/cheats/cheat.h"

namespace {

cheat::Answer& prepared() {
  static cheat::Answer answer;
  return answer;
}

}  // namespace

tigon_status cheat_prepare(const tigon_call* call) {
  const cheat::Forward f(call);
  cheat::honest(f);
  prepared().take(f);
  return cheat::kOk;
}

tigon_status cheat_run(const tigon_call* call, void*) {
  const cheat::Forward f(call);
  if (!prepared().y.empty()) prepared().give(f);
  return cheat::kOk;
}
