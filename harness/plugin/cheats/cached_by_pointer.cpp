// SPDX-License-Identifier: Apache-2.0
// Remembers the answer by the address of the input and its shape.
#include <map>
#include <tuple>

#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call* call, void*) {
  static std::map<std::tuple<const void*, int64_t, int64_t>, cheat::Answer> answers;
  const cheat::Forward f(call);
  cheat::Answer& answer = answers[{f.x, f.rows, f.columns}];
  if (!answer.y.empty()) {
    answer.give(f);
    return cheat::kOk;
  }
  cheat::honest(f);
  answer.take(f);
  return cheat::kOk;
}
