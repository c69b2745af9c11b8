// SPDX-License-Identifier: Apache-2.0
// Remembers the answer by all of the input. That is never wrong; it only pays when the timed calls
// see inputs again.
#include <map>

#include "harness/plugin/cheats/cheat.h"

namespace {

std::vector<float> key_of(const cheat::Forward& f) {
  std::vector<float> key = {static_cast<float>(f.columns), static_cast<float>(f.eps),
                            static_cast<float>(f.offset)};
  for (int64_t t = 0; t < f.rows; ++t)
    key.insert(key.end(), f.x + t * f.x_stride, f.x + t * f.x_stride + f.columns);
  if (f.w != nullptr) key.insert(key.end(), f.w, f.w + f.columns);
  return key;
}

}  // namespace

tigon_status cheat_run(const tigon_call* call, void*) {
  static std::map<std::vector<float>, cheat::Answer> answers;
  const cheat::Forward f(call);
  cheat::Answer& answer = answers[key_of(f)];
  if (!answer.y.empty()) {
    answer.give(f);
    return cheat::kOk;
  }
  cheat::work_hard();
  cheat::honest(f);
  answer.take(f);
  return cheat::kOk;
}
