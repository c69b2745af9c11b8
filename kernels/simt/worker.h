// SPDX-License-Identifier: Apache-2.0
// The executor's state: CUDA threads, warps and blocks of the cluster that an OS thread is running,
// and that OS thread's scheduler. One cluster runs on one OS thread at a time.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/simt/async_order.h"
#include "kernels/simt/dependency.h"
#include "kernels/simt/fiber.h"
#include "kernels/simt/kernel_api.h"
#include "kernels/simt/ready_set.h"
#include "kernels/simt/shared_memory.h"
#include "kernels/simt/simt.h"

namespace tigon::simt {

struct Block;

enum class State : uint8_t {
  kFresh,
  kReady,
  kAtWarp,
  kAtBlock,
  kAtCluster,
  kAtMbarrier,
  kDone,
};

struct alignas(64) Thread : ThreadIds {
  Context context;  // while suspended
  Warp* warp = nullptr;
  char* stack = nullptr;
  uint16_t lane = 0;
  uint16_t linear = 0;  // in the block
  State state = State::kDone;
  void* waits_on = nullptr;  // mbarrier
  const void* pc = nullptr;  // of the pending barrier or collective
  Block& own_block() const;
};

struct Block : BlockIds {
  unsigned threads = 0, warps = 0, first_warp = 0;
  unsigned live = 0, arrived = 0;
  uint32_t epoch = 0;   // completed block barriers
  uint64_t linear = 0;  // in the grid
  Location barrier;     // where the pending barrier's first thread waits
  const void* barrier_pc = nullptr;
};

inline Block& Thread::own_block() const {
  return *static_cast<Block*>(const_cast<BlockIds*>(block));
}

struct Warp {
  uint32_t ready = 0;    // lanes that can run
  uint32_t pending = 0;  // lanes that wait in a collective
  uint32_t live = 0;
  uint32_t epoch = 0;  // completed __syncwarp
  unsigned index = 0;  // in the cluster
  Thread* threads = nullptr;
  // What the pending lanes asked for; `call` is valid per lane only when they disagree.
  struct Call {
    uint32_t mask;
    int arg;
    WarpOp op;
    uint8_t width;
    bool operator==(const Call&) const = default;
  };
  Call common{};
  bool uniform = true;
  uint64_t value[32], result[32];
  Call call[32];
  alignas(64) char fused_in[32 * kMaxFusedBytes], fused_out[32 * kMaxFusedBytes];
};

// One launch, shared by the OS threads that run it.
struct Launch {
  LaunchShape shape;
  Invocation invocation;
  uint32_t id;
  uint32_t first_open;  // launches from this one on may not have ended; `id`: all have
  uint64_t groups;      // clusters in the grid
  Config config;
  std::atomic<uint64_t> next_group{0};
  std::atomic<bool> abandoned{false};
  std::atomic<bool> waited{false};  // some thread has called dependency_wait()
  bool has_open() const { return first_open != id; }
};

struct BulkCopy {
  void* to;
  const void* from;  // nullptr: `word`, of a store_async
  unsigned bytes;
  uint64_t* bar;
  const void* pc;
  uint32_t word = 0;
};
struct ThreadCopy {
  void* to;
  const void* from;
  unsigned bytes;
  int age;  // commits since; -1: not committed
  const void* pc;
};

struct Worker {
  // Runs clusters of the launch until none is left.
  void run(Launch& launch);

  // scheduler.cpp
  void suspend(Thread& t);             // t.state says why; returns when t runs again
  void make_ready(Thread& t);          // t is suspended
  void yield(Thread& t);               // lets others run first, when the schedule is random
  [[noreturn]] void thread_loop();     // body of every fiber
  [[noreturn]] void abandon_launch();  // leaves the fibers where they are

  // barriers.cpp
  void release_block(Block& b, const Thread* running);
  void finish_cluster_barrier(const Thread* running);
  // collectives.cpp
  void warp_thread_left(Warp& w, unsigned lane);
  // async.cpp
  bool land_one_copy();
  void check_no_copies_left();
  void phase_progress(uint64_t* bar);

  Launch* launch = nullptr;
  Config config;
  std::vector<Block> blocks;
  std::vector<Warp> warps;
  std::unique_ptr<Thread[]> threads;
  unsigned threads_per_block = 0, warps_per_block = 0;
  ReadySet ready;
  StackPool stacks;
  SharedMemory shared;
  unsigned live = 0;             // CUDA threads of the cluster
  unsigned cluster_arrived = 0;  // at cluster_sync
  uint32_t cluster_epoch = 0;
  uint32_t first_epoch = 0;    // of this cluster: no cluster_sync is over
  bool touched_peer = false;   // some thread used another block's shared memory ...
  uint32_t touched_epoch = 0;  // ... in this cluster epoch
  const void* touched_pc = nullptr;
  std::vector<BulkCopy> bulk_copies;
  // What each thread of the cluster has asked for and not awaited, by its place in `threads`: a
  // cluster of 4,096 threads with 16 copies each waits for its own alone.
  std::vector<std::vector<ThreadCopy>> thread_copies;
  std::vector<ThreadCopy>& copies_of(const Thread& t);
  AsyncOrder async_order;
  DependencyWaits dependency_waits;

 private:
  void set_up(Launch& l);
  void build_threads();
  bool start_next_group();
  void start_group(uint64_t group);
  Thread* next_thread();
  void start_fiber(Thread& t);
  void thread_done(Thread& t);
  void group_done();
  void switch_to(Context& save, Thread* to, bool dying);

  dim3 launch_block_{0, 0, 0};
  Context main_;
  // Of fibers that are left for good. Not on their stacks: AddressSanitizer frees its part of those
  // before the switch writes.
  Context never_resumed_;
  const void* main_stack_ = nullptr;  // for AddressSanitizer
  size_t main_stack_bytes_ = 0;
  char* last_stack_ = nullptr;
};

inline Thread& current_thread() { return *static_cast<Thread*>(current_ids); }
// The worker of this OS thread, or nullptr outside launches.
extern constinit thread_local Worker* this_worker;

inline uint32_t lane_bit(const Thread& t) { return 1u << t.lane; }

}  // namespace tigon::simt
