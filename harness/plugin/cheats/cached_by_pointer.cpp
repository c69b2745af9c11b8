// Remembers the answer by the address of the input and its shape.
#include <map>
#include <tuple>

#include "harness/plugin/cheats/cheat.h"

int32_t cheat_run(const tigon_call* call, const char**) {
  static std::map<std::tuple<const void*, int64_t, int64_t>, cheat::Answer> answers;
  const cheat::Forward f(call);
  cheat::Answer& answer = answers[{f.x, f.rows, f.columns}];
  if (!answer.y.empty()) {
    answer.give(f);
    return TIGON_OK;
  }
  cheat::honest(f);
  answer.take(f);
  return TIGON_OK;
}
