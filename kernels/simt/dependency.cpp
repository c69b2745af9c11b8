// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/dependency.h"

#include "kernels/simt/worker.h"

namespace tigon::simt {

void DependencyWaits::First::note(uint32_t now) {
  if (!made) epoch = now;
  made = true;
}

void DependencyWaits::wait(const Worker& w, const Thread& t) {
  lanes_.resize(w.warps.size());
  warps_.resize(w.warps.size());
  blocks_.resize(w.blocks.size());
  const Block& b = t.own_block();
  lanes_[t.warp->index] |= lane_bit(t);
  warps_[t.warp->index].note(t.warp->epoch);
  blocks_[b.rank].note(b.epoch);
  cluster_.note(w.cluster_epoch);
}

bool DependencyWaits::cover(const Worker& w, const Thread& t) const {
  if (lanes_.empty()) return false;
  const Block& b = t.own_block();
  return (lanes_[t.warp->index] & lane_bit(t)) != 0 ||
         warps_[t.warp->index].is_before(t.warp->epoch) || blocks_[b.rank].is_before(b.epoch) ||
         cluster_.is_before(w.cluster_epoch);
}

}  // namespace tigon::simt
