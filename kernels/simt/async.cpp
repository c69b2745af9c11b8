// SPDX-License-Identifier: Apache-2.0
// mbarriers, bulk copies, remote stores and cp.async, emulated against the kernel's interest: the
// target of a copy holds NaN and counts as uninitialised until the copy lands, and it lands when no
// CUDA thread of the cluster can run any more (or at a random moment under a random schedule).
#include <algorithm>
#include <cstring>

#include "kernels/simt/check.h"
#include "kernels/simt/report.h"
#include "kernels/simt/worker.h"

namespace tigon::simt {

namespace {
// The 8 bytes of an mbarrier in shared memory.
struct Mbarrier {
  int32_t bytes;  // expected and not yet landed; negative while a copy is ahead of its expectation
  uint16_t arrivals;  // outstanding in this phase
  uint16_t count_and_phase;
};
static_assert(sizeof(Mbarrier) == sizeof(uint64_t));

Mbarrier& mbarrier(uint64_t* p) { return *reinterpret_cast<Mbarrier*>(p); }

// All arrivals are in, so nothing more will be expected in this phase.
void check_bytes(Mbarrier& m, const void* pc) {
  if (m.arrivals != 0 || m.bytes >= 0) return;
  add_finding(Kind::kAsyncCopy, pc, "mbarrier: more bytes arrive than were expected");
  m.bytes = 0;
}

void put_in_flight(void* to, unsigned bytes, bool poison, const void* pc) {
  check::mark_in_flight(to, bytes, pc);
  if (poison) memset(to, 0xff, bytes);
}
}  // namespace

void mbarrier_init(uint64_t* bar, unsigned count) {
  check::mbarrier_access(bar, true, __builtin_return_address(0));
  mbarrier(bar) = {0, static_cast<uint16_t>(count), static_cast<uint16_t>(count << 1)};
  this_worker->async_order.initialize(bar, current_thread());
}

void mbarrier_fence_init() { this_worker->async_order.fence_initialized(current_thread()); }
void bulk_fence() { this_worker->async_order.fence(*this_worker, current_thread()); }

void Worker::phase_progress(uint64_t* bar) {
  Mbarrier& m = mbarrier(bar);
  if (m.arrivals != 0 || m.bytes != 0) return;
  m.count_and_phase ^= 1;
  m.arrivals = m.count_and_phase >> 1;
  const size_t n = blocks.size() * warps_per_block * 32;
  for (size_t i = 0; i < n; ++i)
    if (threads[i].state == State::kAtMbarrier && threads[i].waits_on == bar)
      make_ready(threads[i]);
}

void mbarrier_arrive(uint64_t* bar, unsigned expected_bytes) {
  Mbarrier& m = mbarrier(bar);
  const void* pc = __builtin_return_address(0);
  check::mbarrier_access(bar, false, pc);
  this_worker->async_order.arrive(*this_worker, current_thread());
  if (m.arrivals == 0) {
    add_finding(Kind::kAsyncCopy, pc, "mbarrier: more arrivals than its count");
    return;
  }
  m.bytes += static_cast<int32_t>(expected_bytes);
  --m.arrivals;
  check_bytes(m, pc);
  this_worker->phase_progress(bar);
}

void mbarrier_wait(uint64_t* bar, unsigned parity) {
  Thread& t = current_thread();
  check::mbarrier_access(bar, false, __builtin_return_address(0));
  this_worker->async_order.wait(*this_worker, t);
  while ((mbarrier(bar).count_and_phase & 1u) == parity) {
    t.state = State::kAtMbarrier;
    t.waits_on = bar;
    t.pc = __builtin_return_address(0);
    this_worker->suspend(t);
  }
}

// It reads nothing, so that it may come before the data, and counts as no traffic.
void prefetch_bulk(const void* global, unsigned bytes) {
  const void* pc = __builtin_return_address(0);
  if (((reinterpret_cast<uintptr_t>(global) | bytes) & 15) != 0)
    add_finding(Kind::kMisaligned, pc, "bulk prefetch: address and size must be multiples of 16");
  check::prefetch_range(global, bytes, pc);
}

void bulk_copy(void* shared, const void* global, unsigned bytes, uint64_t* bar) {
  Worker& w = *this_worker;
  const void* pc = __builtin_return_address(0);
  const auto bits = reinterpret_cast<uintptr_t>(shared) | reinterpret_cast<uintptr_t>(global);
  if (((bits | bytes) & 15) != 0)
    add_finding(Kind::kMisaligned, pc, "bulk copy: addresses and size must be multiples of 16");
  if (!w.config.sm_90) add_finding(Kind::kAsyncCopy, pc, "bulk copy: a GPU before sm_90 has none");
  check::access_range(global, bytes, false, pc);
  check::mbarrier_access(bar, false, pc);
  check::copy_signals(bar, pc);
  put_in_flight(shared, bytes, w.config.poison, pc);
  check::copy_overwrites(shared, bytes, pc);
  w.bulk_copies.push_back({shared, global, bytes, bar, pc});
}

void store_async(uint32_t* shared, uint32_t value, uint64_t* bar, unsigned rank) {
  Worker& w = *this_worker;
  const void* pc = __builtin_return_address(0);
  void* const to = cluster_map(shared, rank);
  auto* const there = static_cast<uint64_t*>(cluster_map(bar, rank));
  if (rank != cluster_rank()) check::peer_begun(w, pc);
  check::copy_signals(there, pc);
  put_in_flight(to, sizeof value, w.config.poison, pc);
  w.bulk_copies.push_back({to, nullptr, sizeof value, there, pc, value});
}

bool Worker::land_one_copy() {
  if (bulk_copies.empty()) return false;
  const size_t i = ready.random() ? ready.draw() % bulk_copies.size() : 0;
  const BulkCopy copy = bulk_copies[i];
  bulk_copies.erase(bulk_copies.begin() + static_cast<ptrdiff_t>(i));
  memcpy(copy.to, copy.from != nullptr ? copy.from : &copy.word, copy.bytes);
  check::mark_initialized(copy.to, copy.bytes);
  Mbarrier& m = mbarrier(copy.bar);
  m.bytes -= static_cast<int32_t>(copy.bytes);
  check_bytes(m, copy.pc);
  phase_progress(copy.bar);
  return true;
}

void async_copy(void* shared, const void* global, unsigned bytes) {
  Worker& w = *this_worker;
  const void* pc = __builtin_return_address(0);
  const auto bits = reinterpret_cast<uintptr_t>(shared) | reinterpret_cast<uintptr_t>(global);
  if ((bits & (bytes - 1)) != 0)
    add_finding(Kind::kMisaligned, pc, "cp.async: addresses must be multiples of the size");
  check::access_range(global, bytes, false, pc);
  put_in_flight(shared, bytes, w.config.poison, pc);
  w.copies_of(current_thread()).push_back({shared, global, bytes, -1, pc});
}

std::vector<ThreadCopy>& Worker::copies_of(const Thread& t) {
  const auto place = static_cast<size_t>(&t - threads.get());
  if (place >= thread_copies.size()) thread_copies.resize(place + 1);
  return thread_copies[place];
}

void async_commit() {
  for (ThreadCopy& c : this_worker->copies_of(current_thread())) ++c.age;
}

void async_wait(int pending_groups) {
  auto& copies = this_worker->copies_of(current_thread());
  const void* pc = __builtin_return_address(0);
  const auto lands = [&](const ThreadCopy& c) {
    if (c.age < pending_groups) return false;
    memcpy(c.to, c.from, c.bytes);
    check::access_range(c.to, c.bytes, true, pc);
    return true;
  };
  copies.erase(std::remove_if(copies.begin(), copies.end(), lands), copies.end());
}

void Worker::check_no_copies_left() {
  const auto in_flight = std::find_if(thread_copies.begin(), thread_copies.end(),
                                      [](const auto& copies) { return !copies.empty(); });
  if (bulk_copies.empty() && in_flight == thread_copies.end()) return;
  const void* pc = bulk_copies.empty() ? in_flight->front().pc : bulk_copies.front().pc;
  add_finding(Kind::kAsyncCopy, pc, "asynchronous copies are still in flight when the block ends");
  bulk_copies.clear();
  thread_copies.clear();
}

}  // namespace tigon::simt
