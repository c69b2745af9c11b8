// SPDX-License-Identifier: Apache-2.0
// Answers the judge itself, in the name of the program that it runs in, without working.
#include <unistd.h>

#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call*, void*) {
  static const char kAnswer[] = "{\"code\":0,\"message\":\"\"}";
  [[maybe_unused]] const ssize_t n = write(3, kAnswer, sizeof kAnswer - 1);
  usleep(20000);
  return cheat::kOk;
}
