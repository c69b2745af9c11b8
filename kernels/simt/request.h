// SPDX-License-Identifier: Apache-2.0
// An access of the running CUDA thread as the checker sees it, beside those that the history has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/simt/report.h"
#include "kernels/simt/shadow.h"
#include "kernels/simt/worker.h"

namespace tigon::simt {

using shadow::Access;
using shadow::Cell;

// Flags of Access.
inline constexpr uint8_t kAtomic = 1;
inline constexpr uint8_t kPlain = 32;  // an atomic after a plain write of its thread

inline const void* pc_of(const Access& a) {
  return reinterpret_cast<const void*>(static_cast<uintptr_t>(a.pc_high) << 32 | a.pc_low);
}

inline EarlierAccess earlier_of(const Access& a) {
  return {a.block_plus_1 - 1, a.thread, pc_of(a)};
}

inline bool same_warp(const Access& a, const Access& b) { return a.thread / 32 == b.thread / 32; }
// By one thread, between the same barriers.
inline bool same_interval(const Access& a, const Access& b) {
  return a.block_plus_1 == b.block_plus_1 && a.thread == b.thread &&
         a.block_epoch == b.block_epoch && a.warp_epoch == b.warp_epoch;
}

inline Access access_now(const Worker& w, const Thread& t, bool atomic, const void* pc) {
  const Block& b = t.own_block();
  const auto address = reinterpret_cast<uintptr_t>(pc);
  Access a;
  a.block_plus_1 = static_cast<uint32_t>(b.linear) + 1;
  a.launch = w.launch->id;
  a.thread = t.linear;
  a.block_epoch = static_cast<uint16_t>(b.epoch);
  a.warp_epoch = static_cast<uint16_t>(t.warp->epoch);
  a.cluster_epoch = static_cast<uint16_t>(w.cluster_epoch);
  a.pc_low = static_cast<uint32_t>(address);
  a.pc_high = static_cast<uint16_t>(address >> 32);
  a.flags = atomic ? kAtomic : 0;
  return a;
}

// What the running thread does.
struct Request {
  const Worker& worker;
  const Thread& thread;
  const char* address;
  size_t bytes;
  size_t offset;
  bool write;
  bool shared;
  const void* pc;
  Access access;

  bool same_cluster(const Access& a) const {
    const unsigned blocks = worker.launch->shape.cluster;
    return a.block_plus_1 == access.block_plus_1 ||
           (blocks > 1 && (a.block_plus_1 - 1) / blocks == (access.block_plus_1 - 1) / blocks);
  }
  // Memory of an earlier launch, or shared memory of an earlier block, is ordered before this.
  bool is_history(const Access& a) const {
    return a.block_plus_1 == 0 || a.launch != access.launch || (shared && !same_cluster(a)) ||
           (a.bytes & access.bytes) == 0;
  }
  bool ordered_after(const Access& a) const {
    if (a.block_plus_1 == access.block_plus_1)
      return a.thread == access.thread || a.block_epoch != access.block_epoch ||
             (same_warp(a, access) && a.warp_epoch != access.warp_epoch);
    return same_cluster(a) && a.cluster_epoch != access.cluster_epoch;
  }
  bool both_atomic(const Access& a) const {
    return (a.flags & access.flags & kAtomic) != 0 && (a.flags & kPlain) == 0;
  }
  // An access of a kernel before that may come later still, unless this thread has waited for it.
  bool is_open(const Access& a) const {
    return a.block_plus_1 != 0 && a.launch >= worker.launch->first_open &&
           a.launch < access.launch && (a.bytes & access.bytes) != 0;
  }
};

// " of 4 bytes at shared+16", for messages.
std::string text_of(const Request& r);

}  // namespace tigon::simt
