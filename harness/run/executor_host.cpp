// SPDX-License-Identifier: Apache-2.0
// The host executor as the harness sees it.
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>

#include "harness/run/executor.h"
#include "kernels/device/device_limits.h"
#include "kernels/device/runtime.h"
#include "kernels/simt/device_memory.h"
#include "kernels/simt/model.h"
#include "kernels/simt/simt.h"

namespace tigon {

namespace {
bool is_older = false;
}  // namespace

std::string this_executor() { return simt::checked() ? "checked" : is_older ? kAsSm80 : "fast"; }

bool become_executor(const std::string& name) {
  if (name == "checked" && executor_can_check()) simt::set_checked();
  is_older = name == kAsSm80;
  if (is_older) setenv(kAsVariable, kAsSm80, 1);
  simt::config().sm_90 = !is_as_sm_80();
  return name == this_executor();
}

bool executor_can_check() { return simt::can_check(); }

void executor_watch_prefetches() { simt::watch_prefetches(); }

bool executor_checks() { return simt::checked(); }

void executor_set_threads(int threads) {
  simt::config().os_threads = static_cast<unsigned>(threads);
}

const std::vector<std::string>& executor_orders() {
  static const std::vector<std::string> kOrders = {"natural", "reversed", "random",
                                                   "one warp far ahead"};
  return kOrders;
}

void executor_set_order(int order) {
  // Reverse comes first: it shows what the natural order hides, e.g. a missing barrier before
  // shared memory is reused.
  constexpr simt::Schedule kSchedules[] = {simt::Schedule::kSequential, simt::Schedule::kReverse,
                                           simt::Schedule::kUniform, simt::Schedule::kAhead};
  simt::config().schedule = kSchedules[order % 4];
}

namespace {

// The limit of addresses that a child has, moved by what is reserved: untouched pages are no
// memory.
void move_address_limit(int64_t bytes) {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  limit.rlim_cur = static_cast<rlim_t>(static_cast<int64_t>(limit.rlim_cur) + bytes);
  setrlimit(RLIMIT_AS, &limit);
}

}  // namespace

void* executor_reserve(size_t bytes) {
  move_address_limit(static_cast<int64_t>(bytes));
  if (void* p = simt::memory_reserve(bytes)) return p;
  move_address_limit(-static_cast<int64_t>(bytes));
  throw DeviceOutOfMemory("cannot reserve " + std::to_string(bytes) + " bytes of addresses");
}

void executor_release(void* p, size_t bytes) {
  simt::memory_release(p, bytes);
  move_address_limit(-static_cast<int64_t>(bytes));
}

void executor_reset() {
  simt::reports_reset();
  simt::counters_reset();
}

std::vector<Finding> executor_findings() {
  std::vector<Finding> findings;
  for (const simt::Report& r : simt::reports()) {
    const bool outside =
        r.kind == simt::Kind::kOutOfBounds && r.message.find("write") != std::string::npos;
    findings.push_back({outside ? Verdict::kOutOfBoundsWrite : Verdict::kRuntimeError, r.message});
  }
  return findings;
}

namespace {

KernelTrace trace_of(std::string name, const simt::Counters& c) {
  KernelTrace t;
  t.name = std::move(name);
  t.launches = static_cast<int64_t>(c.launches);
  t.bytes_loaded = static_cast<double>(c.global_load_bytes);
  t.bytes_stored = static_cast<double>(c.global_store_bytes);
  t.requests = static_cast<double>(c.global_load_requests + c.global_store_requests);
  t.sectors = static_cast<double>(c.global_load_sectors + c.global_store_sectors);
  t.bank_conflicts = static_cast<double>(c.shared_conflicts);
  t.barriers = static_cast<double>(c.barriers);
  t.atomics = static_cast<double>(c.atomics);
  return t;
}

std::string place(const std::string& file, unsigned line) {
  return line == 0 ? file : file + ":" + std::to_string(line);
}

}  // namespace

std::vector<KernelTrace> executor_counters() {
  std::vector<KernelTrace> traces;
  for (const auto& [name, c] : simt::counters()) traces.push_back(trace_of(name, c));
  return traces;
}

std::vector<KernelTrace> executor_line_counters() {
  std::vector<KernelTrace> lines;
  for (const simt::LineCounters& l : simt::line_counters())
    lines.push_back(trace_of(place(l.file, l.line), l.counters));
  std::stable_sort(lines.begin(), lines.end(), [](const KernelTrace& a, const KernelTrace& b) {
    return a.bytes_loaded + a.bytes_stored > b.bytes_loaded + b.bytes_stored;
  });
  return lines;
}

void executor_without_running(const std::function<void(Stream)>& work) {
  struct NotRun {
    NotRun() { simt::set_runs(false); }
    ~NotRun() { simt::set_runs(true); }
  } const not_run;
  work(nullptr);
}
int executor_multiprocessors() { return simt::kMultiprocessors; }

std::vector<std::string> executor_take_launched() { return simt::take_launched(); }

std::map<std::string, std::string> executor_kernels() {
  std::map<std::string, std::string> files;
  for (const simt::Kernel& k : simt::kernels()) files[k.name] = k.file;
  return files;
}

std::vector<Writer> executor_writers(const std::vector<const void*>& addresses) {
  std::vector<Writer> all;
  for (const simt::Writer& w : simt::writers(addresses))
    all.push_back({w.known, w.block, w.thread, place(w.file, w.line)});
  return all;
}

}  // namespace tigon
