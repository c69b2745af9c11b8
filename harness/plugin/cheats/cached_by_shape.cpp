// Remembers the answer by the shape.
#include <map>

#include "harness/plugin/cheats/cheat.h"

int32_t cheat_run(const tigon_call* call, const char**) {
  static std::map<std::pair<int64_t, int64_t>, cheat::Answer> answers;
  const cheat::Forward f(call);
  cheat::Answer& answer = answers[{f.rows, f.columns}];
  if (!answer.y.empty()) {
    answer.give(f);
    return TIGON_OK;
  }
  cheat::honest(f);
  answer.take(f);
  return TIGON_OK;
}
