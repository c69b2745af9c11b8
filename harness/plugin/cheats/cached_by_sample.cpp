// SPDX-License-Identifier: Apache-2.0
// Remembers the answer by the shape and the first elements of the input: cheaper than reading it.
#include <algorithm>
#include <map>

#include "harness/plugin/cheats/cheat.h"

namespace {

constexpr int64_t kSample = 8;

std::vector<float> key_of(const cheat::Forward& f) {
  std::vector<float> key(f.x, f.x + std::min(kSample, f.columns));
  key.push_back(static_cast<float>(f.rows));
  key.push_back(static_cast<float>(f.columns));
  key.push_back(static_cast<float>(f.offset));
  return key;
}

}  // namespace

tigon_status cheat_run(const tigon_call* call, void*) {
  static std::map<std::vector<float>, cheat::Answer> answers;
  const cheat::Forward f(call);
  if (f.rows == 0) return cheat::kOk;
  cheat::Answer& answer = answers[key_of(f)];
  if (!answer.y.empty()) {
    answer.give(f);
    return cheat::kOk;
  }
  cheat::honest(f);
  answer.take(f);
  return cheat::kOk;
}
