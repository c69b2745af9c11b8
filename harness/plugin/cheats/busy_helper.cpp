// SPDX-License-Identifier: Apache-2.0
// A thread that is there from the start never rests: it might prepare the next call.
#include <atomic>
#include <thread>

#include "harness/plugin/cheats/cheat.h"

namespace {

std::atomic<uint64_t> prepared = 0;

[[maybe_unused]] const bool started = [] {
  std::thread([] {
    for (;;) ++prepared;
  }).detach();
  return true;
}();

}  // namespace

tigon_status cheat_run(const tigon_call* call, void*) {
  cheat::honest(cheat::Forward(call));
  return cheat::kOk;
}
