// SPDX-License-Identifier: Apache-2.0
// What random cases ended with.
#include "harness/run/judging/soak.h"

#include <fmt/format.h>

#include "harness/json/json.h"

namespace tigon {

Json to_json(const SoakResult& r) {
  Json alarms = Json::array();
  for (const CheckResult& a : r.alarms)
    alarms.push_back(
        {{"case_id", case_id(a.c)}, {"verdict", name_of(a.verdict)}, {"reason", a.reason}});
  return {{"op", r.op},
          {"dtype", name_of(r.dtype)},
          {"executor", r.executor},
          {"mode", "seeds"},
          {"trials", r.trials},
          {"false_alarms", r.alarms.size()},
          {"skipped", r.skipped},
          {"first_seed", r.first_seed},
          {"alarms", alarms},
          {"seconds_s", r.seconds}};
}

void VerdictDiff::add(const CheckResult& result) {
  const std::string id = case_id(result.c);
  const auto [first, is_new] = first_.emplace(result.executor + " " + id, result.verdict);
  if (!is_new && first->second != result.verdict)
    differing_.push_back(fmt::format("{} [{}]: {}, then {}", id, result.executor,
                                     name_of(first->second), name_of(result.verdict)));
}

}  // namespace tigon
