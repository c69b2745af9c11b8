// SPDX-License-Identifier: Apache-2.0
// Looks for the reference's answer in the memory of the processes above it.
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>

#include "harness/plugin/cheats/cheat.h"

tigon_status cheat_run(const tigon_call*, void*) {
  const pid_t judge = getppid();
  char name[64], byte = 0;
  std::snprintf(name, sizeof name, "/proc/%d/mem", judge);
  iovec here = {&byte, 1}, there = {&byte, 1};
  const bool opened = open(name, O_RDONLY) >= 0;
  const bool read = process_vm_readv(judge, &here, 1, &there, 1, 0) == 1;
  if (!opened && !read) return cheat::kOk;                   // nothing found, and nothing written
  return {TIGON_UNSUPPORTED, "the judge's memory is open"};  // a skip, not a failure
}
