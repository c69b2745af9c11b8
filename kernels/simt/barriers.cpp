// SPDX-License-Identifier: Apache-2.0
// Block and cluster barriers.
#include "kernels/simt/check.h"
#include "kernels/simt/report.h"
#include "kernels/simt/worker.h"

namespace tigon::simt {

void Worker::release_block(Block& b, const Thread* running) {
  b.arrived = 0;
  ++b.epoch;
  check::count_barrier();
  for (unsigned i = 0; i < b.warps; ++i) {
    Warp& w = warps[b.first_warp + i];
    check::end_of_interval(w);
    uint32_t lanes = w.live;
    if (running != nullptr && running->warp == &w) lanes &= ~lane_bit(*running);
    for (uint32_t m = lanes; m != 0; m &= m - 1) w.threads[__builtin_ctz(m)].state = State::kReady;
    ready.add(w, lanes);
  }
}

void Worker::finish_cluster_barrier(const Thread* running) {
  cluster_arrived = 0;
  ++cluster_epoch;
  for (Block& b : blocks) release_block(b, running);
}

void block_sync(Location where) {
  Worker& w = *this_worker;
  Thread& t = current_thread();
  Block& b = t.own_block();
  const void* pc = __builtin_return_address(0);
  if (b.arrived == 0) {
    b.barrier = where;
    b.barrier_pc = pc;
  } else if (w.config.strict && b.barrier != where) {
    report_divergent_barrier(b, pc);
  }
  if (++b.arrived < b.live) {
    t.state = State::kAtBlock;
    t.pc = pc;
    w.suspend(t);
    return;
  }
  if (w.config.strict && b.live != b.threads) report_early_exit(b);
  w.release_block(b, &t);
  w.yield(t);
}

void cluster_sync() {
  Worker& w = *this_worker;
  Thread& t = current_thread();
  if (++w.cluster_arrived < w.live) {
    t.state = State::kAtCluster;
    t.pc = __builtin_return_address(0);
    w.suspend(t);
    return;
  }
  w.finish_cluster_barrier(&t);
  w.yield(t);
}

unsigned cluster_rank() { return current_ids->block->rank; }
unsigned cluster_size() { return this_shape->cluster; }

}  // namespace tigon::simt
