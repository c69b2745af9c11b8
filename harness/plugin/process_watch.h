// SPDX-License-Identifier: Apache-2.0
// What a plug-in's process does beside answering, seen from outside.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace tigon::plugin {

// Threads of the process; 0 when it is gone.
int thread_count(pid_t pid);

// Processor time of all its threads so far, in seconds.
double processor_seconds(pid_t pid);

// Whether one of its threads runs or waits for a processor.
bool is_runnable(pid_t pid);

// Processes that it has started and that still run, also those whose parent has ended and that
// became ours. `ours`: processes that we started ourselves.
std::vector<pid_t> started_by(pid_t pid, const std::vector<pid_t>& ours);

}  // namespace tigon::plugin
