// SPDX-License-Identifier: Apache-2.0
// The checker: every access of kernel code is looked up in the shadow. Two accesses of the
// same bytes, at least one a write, race unless a barrier orders them: __syncthreads in a block,
// __syncwarp in a warp, cluster_sync in a cluster. A shuffle orders nothing. Blocks of different
// clusters are never ordered; two atomics never race. Kernels before are ordered, unless the launch
// is a dependent one that has not waited for them.
#include <cstdio>

#include "kernels/simt/check.h"
#include "kernels/simt/device_memory.h"
#include "kernels/simt/launched.h"
#include "kernels/simt/report.h"
#include "kernels/simt/request.h"
#include "kernels/simt/symbolize.h"
#include "kernels/simt/traffic.h"
#include "kernels/simt/tsan_hooks.h"

// Of the program or library that holds the kernels, from the linker.
extern "C" __attribute__((visibility("hidden"))) char __ehdr_start, _end;

namespace tigon::simt {

namespace {

// Flags of Access. Of the latest read or atomic: who else has made one since the last barrier that
// would order them.
constexpr uint8_t kOtherLane = 2;   // of the same warp
constexpr uint8_t kOtherWarp = 4;   // of the same block
constexpr uint8_t kOtherBlock = 8;  // of the same cluster
constexpr uint8_t kOtherCluster = 16;

void race(const Request& r, const char* what, const Access& a) {
  const EarlierAccess earlier = earlier_of(a);
  add_finding(Kind::kRace, r.pc, what + text_of(r), &earlier);
}

// True when the running thread races with the latest access or with one that it stands for.
bool races_with(const Request& r, const Access& a) {
  if (r.is_history(a) || r.both_atomic(a)) return false;
  if ((a.flags & kOtherCluster) != 0 || !r.same_cluster(a)) return true;
  if ((a.flags & kOtherBlock) != 0) return a.cluster_epoch == r.access.cluster_epoch;
  const bool same_epoch =
      a.block_plus_1 == r.access.block_plus_1 && a.block_epoch == r.access.block_epoch;
  if (same_epoch && (a.flags & kOtherWarp) != 0) return true;
  if (same_epoch && (a.flags & kOtherLane) != 0)
    return !same_warp(a, r.access) || a.warp_epoch == r.access.warp_epoch;
  return !r.ordered_after(a);
}

// Flags that say for whom else the running thread's access stands when it takes the place of `a`.
uint8_t others(const Request& r, const Access& a) {
  if (r.is_history(a)) return 0;
  const Access& now = r.access;
  uint8_t flags = a.flags & kOtherCluster;
  if (!r.same_cluster(a)) return flags | kOtherCluster;
  if (a.cluster_epoch == now.cluster_epoch) {
    flags |= a.flags & kOtherBlock;
    if (a.block_plus_1 != now.block_plus_1) flags |= kOtherBlock;
  }
  if (a.block_plus_1 != now.block_plus_1 || a.block_epoch != now.block_epoch) return flags;
  flags |= a.flags & kOtherWarp;
  if (!same_warp(a, now)) return flags | kOtherWarp;
  // An earlier __syncwarp lets the new access stand for the older ones of its warp.
  if (a.warp_epoch != now.warp_epoch) return flags;
  flags |= a.flags & kOtherLane;
  if (a.thread != now.thread) flags |= kOtherLane;
  return flags;
}

// All flags that the running thread's access takes over from the latest one of its kind.
uint8_t flags_after(const Request& r, const Access& latest) {
  uint8_t flags = !r.write || r.both_atomic(latest) ? others(r, latest) : 0;
  const bool atomic = (r.access.flags & kAtomic) != 0;
  if (atomic && !r.is_history(latest) && same_interval(latest, r.access) &&
      (latest.flags & (kAtomic | kPlain)) != kAtomic)
    flags |= kPlain;
  return flags;
}

// In a launch that may have started before the one before it has ended.
void check_dependency(const Request& r, const Cell& first, const Cell& last) {
  const Access* open = nullptr;
  for (const Cell* cell = &first; cell <= &last && open == nullptr; ++cell)
    open = r.is_open(cell->write)             ? &cell->write
           : r.write && r.is_open(cell->read) ? &cell->read
                                              : nullptr;
  if (open == nullptr || r.worker.dependency_waits.cover(r.worker, r.thread)) return;
  const EarlierAccess earlier = earlier_of(*open);
  add_finding(Kind::kDependency, r.pc,
              (r.write ? "write" : "read") + text_of(r) +
                  " without dependency_wait(): the kernel before may still use them",
              &earlier);
}

void check_cell(const Request& r, Cell& cell) {
  const uint32_t now = r.access.launch;  // what others touched is history: most cells
  if (cell.write.launch == now && races_with(r, cell.write))
    race(r, r.write ? "write after write" : "read after write", cell.write);
  if (r.write && cell.read.launch == now && races_with(r, cell.read))
    race(r, "write after read", cell.read);
  Access& latest = r.write ? cell.write : cell.read;
  const uint8_t flags = latest.launch == now ? flags_after(r, latest) : 0;
  latest = r.access;
  latest.flags |= flags;
}

void check_races(Request& r) {
  Cell* cells = shadow::arena.cells;
  const size_t first = r.offset / shadow::kCellBytes;
  const size_t last = (r.offset + r.bytes - 1) / shadow::kCellBytes;
  r.access.bytes = r.bytes == 1 ? static_cast<uint8_t>(1u << (r.offset & 1)) : 3;
  if (!r.shared && r.worker.launch->has_open()) check_dependency(r, cells[first], cells[last]);
  for (size_t c = first; c <= last; ++c) check_cell(r, cells[c]);
}

bool is_in(const void* p, const void* begin, size_t bytes) {
  return reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(begin) < bytes;
}

bool is_on_own_stack(const void* p) {
  return is_in(p, current_thread().stack, this_worker->stacks.stack_bytes());
}

// Constants of the program; anything else but the thread's own stack is a wild pointer.
void check_host_memory(const void* p, size_t bytes, bool write, const void* pc) {
  if (!write && is_in(p, &__ehdr_start, static_cast<size_t>(&_end - &__ehdr_start))) return;
  char what[120];
  snprintf(what, sizeof what, "%s of %zu bytes at %p, which is not device memory",
           write ? "write" : "read", bytes, p);
  add_finding(Kind::kOutOfBounds, pc, what);
  this_worker->abandon_launch();
}

// False when the access cannot be made.
bool check_bounds(const Request& r) {
  const bool power_of_2 = (r.bytes & (r.bytes - 1)) == 0;
  if (power_of_2 && (r.offset & (r.bytes - 1)) != 0) {
    add_finding(Kind::kMisaligned, r.pc, (r.write ? "write" : "read") + text_of(r));
    return false;
  }
  if (!shadow::has_state(r.offset, r.bytes, shadow::kAllocated)) {
    add_finding(Kind::kOutOfBounds, r.pc, (r.write ? "write" : "read") + text_of(r));
    return !r.write;
  }
  return true;
}

// Of memory in the arena. Returns whether it is shared memory.
bool check_memory(const void* p, size_t bytes, bool write, bool atomic, const void* pc) {
  Worker& w = *this_worker;
  const Thread& t = current_thread();
  const size_t offset = shadow::offset_of(p);
  const int owner = w.shared.owner(p);
  Request r{w,          t,  static_cast<const char*>(p), bytes, offset, write,
            owner >= 0, pc, access_now(w, t, atomic, pc)};
  if (r.shared) r.access.events = w.async_order.events(w, t) & shadow::kEventMask;
  if (!check_bounds(r)) w.abandon_launch();
  if ((!write || atomic) && !shadow::has_state(offset, bytes, shadow::kInitialized))
    add_finding(Kind::kUninitialized, pc, text_of(r).substr(1));
  if (write) shadow::set_state(p, bytes, shadow::kAllocated | shadow::kInitialized);
  if (owner >= 0 && owner != static_cast<int>(t.block->rank)) {
    check::peer_begun(w, pc);
    w.touched_peer = true;
    w.touched_epoch = w.cluster_epoch;
    w.touched_pc = pc;
  }
  check_races(r);
  return r.shared;
}

void check_access(const void* p, size_t bytes, bool write, bool atomic, const void* pc) {
  if (is_on_own_stack(p)) return;  // first: it asks for no shadow
  const size_t offset = shadow::offset_of(p);
  if (offset >= shadow::kArenaBytes) return check_host_memory(p, bytes, write, pc);
  const bool shared = check_memory(p, bytes, write, atomic, pc);
  const Worker& w = *this_worker;
  if (!w.config.count) return;
  const Thread& t = current_thread();
  if (atomic)
    traffic::count_atomic(pc);
  else
    traffic::note(*t.warp, t.lane, static_cast<uint32_t>(offset), bytes, write, shared, pc);
}

}  // namespace

std::string text_of(const Request& r) {
  char text[200];
  if (r.shared) {
    snprintf(text, sizeof text, " of %zu bytes at shared+%td", r.bytes,
             r.address - r.thread.block->shared);
    return text;
  }
  snprintf(text, sizeof text, " of %zu bytes at ", r.bytes);
  return text + shadow::describe(r.address);
}

bool checked() { return check::enabled; }

#ifdef TIGON_SIMT_INSTRUMENTED
bool can_check() { return true; }
#else
bool can_check() { return false; }
#endif

void set_checked() { check::enabled = true; }

std::vector<Writer> writers(const std::vector<const void*>& addresses) {
  if (!check::enabled) return std::vector<Writer>(addresses.size());
  std::vector<Access> found;
  std::vector<const void*> pcs;
  for (const void* p : addresses) {
    const size_t offset = shadow::offset_of(p);
    found.push_back(offset < shadow::kArenaBytes
                        ? shadow::arena.cells[offset / shadow::kCellBytes].write
                        : Access{});
    pcs.push_back(pc_of(found.back()));
  }
  resolve(pcs);
  std::vector<Writer> all;
  for (const Access& a : found) {
    Writer& w = all.emplace_back();
    w.known = a.block_plus_1 != 0;
    if (!w.known) continue;
    w.block = a.block_plus_1 - 1;
    w.thread = a.thread;
    const SourceLine at = source_line(pc_of(a));
    w.file = at.file;
    w.line = at.line;
  }
  return all;
}

void note_access(const void* p, size_t bytes, bool write, const void* pc) {
  if (current_ids != nullptr) check_access(p, bytes, write, false, pc);
}

namespace check {

constinit bool enabled = false;

void peer_begun(const Worker& w, const void* pc) {
  if (enabled && w.cluster_epoch == w.first_epoch)
    add_finding(Kind::kClusterStart, pc,
                "a peer's shared memory is used before it may have begun: no cluster_sync before "
                "the first such access");
}

// Threads use an mbarrier as they would an atomic; its initialisation is a plain write.
void mbarrier_access(uint64_t* mbarrier, bool init, const void* pc) {
  if (enabled && shadow::offset_of(mbarrier) < shadow::kArenaBytes)
    check_memory(mbarrier, sizeof *mbarrier, true, !init, pc);
}

void forbid(void* p, size_t bytes) {
  if (enabled) shadow::set_state(p, bytes, 0);
}
void undefine(void* p, size_t bytes) {
  if (enabled) shadow::set_state(p, bytes, shadow::kAllocated);
}
void mark_initialized(void* p, size_t bytes) {
  if (enabled) shadow::set_state(p, bytes, shadow::kAllocated | shadow::kInitialized);
}

void mark_in_flight(void* p, size_t bytes, const void* pc) {
  if (!enabled) return;
  if (shadow::offset_of(p) >= shadow::kArenaBytes ||
      !shadow::has_state(shadow::offset_of(p), bytes, shadow::kAllocated)) {
    add_finding(Kind::kOutOfBounds, pc, "target of an asynchronous copy");
    this_worker->abandon_launch();
  }
  shadow::set_state(p, bytes, shadow::kAllocated);
}

void access_range(const void* p, size_t bytes, bool write, const void* pc) {
  if (!enabled) return;
  const char* c = static_cast<const char*>(p);
  for (size_t i = 0; i < bytes; i += 16)
    check_access(c + i, bytes - i < 16 ? bytes - i : 16, write, false, pc);
}

void prefetch_range(const void* p, size_t bytes, const void* pc) {
  const size_t offset = shadow::offset_of(p);
  const bool may = !enabled ? may_prefetch(p, bytes)
                            : offset < shadow::kArenaBytes &&
                                  shadow::has_state(offset, bytes, shadow::kAllocated);
  if (!may) add_finding(Kind::kOutOfBounds, pc, "bulk prefetch of what is not a tensor's");
}

void atomic_access(void* p, size_t bytes, const void* pc) {
  if (enabled) check_access(p, bytes, true, true, pc);
}

void end_of_interval(Warp& w) {
  if (enabled) traffic::end_of_interval(w);
}
void count_barrier() {
  if (enabled) traffic::count_barrier();
}

// If nobody waits, the launch may end before the one before it, and what comes next may begin.
void launch_ends(Launch& l) {
  if (!enabled) return;
  if (l.has_open() && !l.waited && !l.abandoned)
    add_finding_of(nullptr, Kind::kDependency, static_cast<const char*>(l.invocation.kernel) + 1,
                   "no thread calls dependency_wait()");
  traffic::launch_ends(l);
}
void worker_ends(Worker& w) {
  if (enabled) traffic::worker_ends(w);
}

}  // namespace check
}  // namespace tigon::simt
