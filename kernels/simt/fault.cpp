// SPDX-License-Identifier: Apache-2.0
// SIGSEGV, SIGBUS and SIGFPE in kernel code: noted, the launch dropped, the process goes on.
#include "kernels/simt/fault.h"

#include <signal.h>

#include <cstdio>
#include <iterator>
#include <mutex>
#include <string>

#include "kernels/simt/report.h"
#include "kernels/simt/sanitizer.h"
#include "kernels/simt/worker.h"

namespace tigon::simt {

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction earlier_action[std::size(kSignals)];

const struct sigaction& earlier_action_of(int signal) {
  size_t i = 0;
  while (kSignals[i] != signal) ++i;
  return earlier_action[i];
}

const void* program_counter(void* context) {
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(
      static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] + 1);
#else
  (void)context;
  return nullptr;
#endif
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (current_ids == nullptr) {
    sigaction(signal, &earlier_action_of(signal), nullptr);
    return;  // the instruction runs again and faults again
  }
  char what[160];
  const Thread& t = current_thread();
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool overflow = address - reinterpret_cast<uintptr_t>(t.stack) < 4096;
  snprintf(what, sizeof what, "%s at address %p%s",
           signal == SIGFPE ? "integer division by zero" : "invalid memory access", info->si_addr,
           overflow ? " (overflow of the thread's stack; simt::Config::stack is its size)" : "");
  add_finding(Kind::kFault, program_counter(context), what);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, signal);
  pthread_sigmask(SIG_UNBLOCK, &mask, nullptr);
  this_worker->abandon_launch();
}

}  // namespace

void install_fault_handler() {
  if (sanitizer::kEnabled) return;  // it explains faults itself
  // A fault may be an overflow of the fiber's stack, so the handler has its own.
  static thread_local char stack[64 * 1024];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (size_t i = 0; i < std::size(kSignals); ++i)
      sigaction(kSignals[i], &action, &earlier_action[i]);
  });
}

void misaligned(const void* p) {
  char what[80];
  snprintf(what, sizeof what, "16-byte access at %p, which is not a multiple of 16", p);
  add_finding(Kind::kMisaligned, __builtin_return_address(0), what);
  this_worker->abandon_launch();
}

void trap(const char* what) {
  add_finding(Kind::kTrap, __builtin_return_address(0), what);
  this_worker->abandon_launch();
}

}  // namespace tigon::simt
