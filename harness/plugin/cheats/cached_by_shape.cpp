// SPDX-License-Identifier: Apache-2.0
// Remembers the answer by the shape.
#include <map>

#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  static std::map<std::pair<int64_t, int64_t>, cheat::Answer> answers;
  const cheat::Forward f(call);
  cheat::Answer& answer = answers[{f.rows, f.columns}];
  if (!answer.y.empty()) {
    answer.give(f);
    return cheat::kOk;
  }
  cheat::honest(f);
  answer.take(f);
  return cheat::kOk;
}
