// SPDX-License-Identifier: Apache-2.0
// Only remembers what it is asked for; every 15th call does the work of 15 at once.
#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  static std::vector<cheat::Forward> waiting;
  waiting.emplace_back(call);
  if (waiting.size() < 15) return cheat::kOk;
  for (const cheat::Forward& f : waiting) cheat::honest(f);
  waiting.clear();
  return cheat::kOk;
}
