// The host executor as the harness sees it.
#include <sys/mman.h>
#include <sys/resource.h>

#include "harness/run/executor.h"
#include "kernels/device/runtime.h"
#include "kernels/simt/simt.h"

namespace tigon {

std::string this_executor() { return simt::checked() ? "checked" : "fast"; }

bool executor_checks() { return simt::checked(); }

void executor_set_threads(int threads) {
  simt::config().os_threads = static_cast<unsigned>(threads);
}

void executor_set_order(int order) {
  // Reverse shows what the natural order hides, e.g. a missing barrier before shared memory is
  // reused.
  simt::config().schedule = order == 0 ? simt::Schedule::kSequential : simt::Schedule::kReverse;
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
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p != MAP_FAILED) return p;
  move_address_limit(-static_cast<int64_t>(bytes));
  throw DeviceOutOfMemory("cannot reserve " + std::to_string(bytes) + " bytes of addresses");
}

void executor_release(void* p, size_t bytes) {
  munmap(p, bytes);
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

std::vector<KernelTrace> executor_counters() {
  std::vector<KernelTrace> traces;
  for (const auto& [name, c] : simt::counters()) {
    KernelTrace t;
    t.name = name;
    t.launches = static_cast<int64_t>(c.launches);
    t.bytes_loaded = static_cast<double>(c.global_load_bytes);
    t.bytes_stored = static_cast<double>(c.global_store_bytes);
    t.requests = static_cast<double>(c.global_load_requests + c.global_store_requests);
    t.sectors = static_cast<double>(c.global_load_sectors + c.global_store_sectors);
    t.bank_conflicts = static_cast<double>(c.shared_conflicts);
    t.barriers = static_cast<double>(c.barriers);
    t.atomics = static_cast<double>(c.atomics);
    traces.push_back(std::move(t));
  }
  return traces;
}

}  // namespace tigon
