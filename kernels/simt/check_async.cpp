// SPDX-License-Identifier: Apache-2.0
// The checker's part of async.cpp: what a copy must not do before a fence (async_order.h).
#include "kernels/simt/check.h"
#include "kernels/simt/request.h"

namespace tigon::simt::check {

void copy_signals(const uint64_t* mbarrier, const void* pc) {
  if (enabled && !this_worker->async_order.may_signal(mbarrier))
    add_finding(Kind::kFence, pc,
                "a copy signals an mbarrier whose initialisation is not fenced: no "
                "mbarrier_fence_init() after mbarrier_init()");
}

// In the history the copy takes the place of what was there.
void copy_overwrites(const void* p, size_t bytes, const void* pc) {
  if (!enabled) return;
  const Worker& w = *this_worker;
  const Thread& t = current_thread();
  Request r{w,    t,  static_cast<const char*>(p), bytes, shadow::offset_of(p), true,
            true, pc, access_now(w, t, false, pc)};
  r.access.bytes = 3;
  Access unfenced;
  Cell* const cells = shadow::arena.cells + r.offset / shadow::kCellBytes;
  for (size_t c = 0; c < bytes / shadow::kCellBytes; ++c) {
    for (const Access& a : {cells[c].read, cells[c].write})
      if (unfenced.block_plus_1 == 0 && !r.is_history(a) && !w.async_order.is_fenced(w, a, t))
        unfenced = a;
    cells[c] = {};
  }
  if (unfenced.block_plus_1 == 0) return;
  const EarlierAccess earlier = earlier_of(unfenced);
  add_finding(Kind::kFence, pc,
              "bulk copy" + text_of(r) + " over what was accessed: no bulk_fence() between",
              &earlier);
}

}  // namespace tigon::simt::check
