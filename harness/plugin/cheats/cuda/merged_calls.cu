// Only remembers what it is asked for; every 15th call does the work of 15 at once.
#include "harness/plugin/cheats/cuda/cheat_cuda.h"

int32_t cheat_run(const tigon_call* call, const char**) {
  static std::vector<cheat::Forward> waiting;
  waiting.emplace_back(call);
  if (waiting.size() < 15) return TIGON_OK;
  for (const cheat::Forward& f : waiting) cheat::start(f, cheat::stream_of(call));
  waiting.clear();
  return cheat::status();
}
