// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, termination and a closed terminal.
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "harness/run/check.h"

namespace tigon {

namespace {

std::atomic<int> signals{0};

void on_signal(int) {
  if (signals.fetch_add(1) > 0) _exit(kExitInterrupted);
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction before = {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup asked to ignore
}

bool interrupted() { return signals.load() > 0; }

}  // namespace tigon
