// SPDX-License-Identifier: Apache-2.0
// What differs between the executors: the host executor, fast or checking accesses, and a GPU. One
// of executor_host.cpp and executor_cuda.cpp is in a build.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/judge/verdict.h"
#include "harness/run/check.h"

namespace tigon {

// A fault that the executor saw in a kernel; verdict is kOutOfBoundsWrite or kRuntimeError.
struct Finding {
  Verdict verdict = Verdict::kRuntimeError;
  std::string message;  // one line: what, kernel, block, thread, file:line
};

// Name of the executor of this process: "cuda"; or "fast" until become_executor().
std::string this_executor();
// Makes the executor of this process another one: once, before anything runs. False where it is
// none of this build's. On the host: "checked", where it can check, and "sm_80", which is "fast"
// with the launch paths of a GPU before sm_90.
bool become_executor(const std::string& name);
// False on a GPU and in a build for sanitizers.
bool executor_can_check();
// Whatever the executor, a kernel must not prefetch what is no tensor: once, before anything runs.
void executor_watch_prefetches();
// True when the executor itself watches every access of a kernel, red zones included.
bool executor_checks();
// Threads of the operating system that run kernels; 0: one per core.
void executor_set_threads(int threads);
// Orders in which the threads of a kernel can be run, the natural one first; one where that cannot
// be chosen. executor_set_order takes an index, modulo their number.
const std::vector<std::string>& executor_orders();
void executor_set_order(int order);

// Multiprocessors that launchers count with; on the host those of the GPU that it stands for.
int executor_multiprocessors();

// Device memory of which only a small part will be touched; on the host it takes no more than that
// part. Throws DeviceOutOfMemory.
void* executor_reserve(size_t bytes);
void executor_release(void* p, size_t bytes);

// Findings and counters since the last reset.
void executor_reset();
std::vector<Finding> executor_findings();
std::vector<KernelTrace> executor_counters();
std::vector<KernelTrace> executor_line_counters();  // by source line, the most bytes first

// Calls work(stream), whose launches into that stream do not run, so that tensors need no memory.
// On the host they are noted, on a GPU captured and dropped.
void executor_without_running(const std::function<void(Stream)>& work);
// Kernels that were launched since the last call, each once; none is known on a GPU.
std::vector<std::string> executor_take_launched();
// All that this program has, by name: file, e.g. "kernels/rope/rope.cu". None is known on a GPU.
std::map<std::string, std::string> executor_kernels();

// Who wrote an address last.
struct Writer {
  bool known = false;
  uint64_t block = 0;
  unsigned thread = 0;  // in its block
  std::string line;     // "kernels/rope/rope.cu:88"
};
// None is known but in the checking executor.
std::vector<Writer> executor_writers(const std::vector<const void*>& addresses);

}  // namespace tigon
