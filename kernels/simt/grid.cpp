// SPDX-License-Identifier: Apache-2.0
// A launch: its grid is cut into clusters, which OS threads draw from a counter.
#include <mutex>

#include "kernels/simt/check.h"
#include "kernels/simt/fault.h"
#include "kernels/simt/launched.h"
#include "kernels/simt/model.h"
#include "kernels/simt/report.h"
#include "kernels/simt/thread_pool.h"
#include "kernels/simt/worker.h"

namespace tigon::simt {

namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxCluster = 16;
constexpr unsigned kMaxGridYz = 65535;

uint64_t volume(const dim3& d) { return uint64_t{d.x} * d.y * d.z; }

// Why a GPU before sm_90 would refuse what later ones take, or nullptr.
const char* objection_before_sm_90(const LaunchShape& s) {
  if (s.cluster > 1) return "a GPU before sm_90 has no clusters";
  if (s.dynamic_bytes > kSharedPerBlockBeforeSm90)
    return "before sm_90 a block may have at most 163 KB of dynamic shared memory";
  return nullptr;
}

// Why CUDA would refuse the launch, or nullptr.
const char* objection(const LaunchShape& s) {
  if (volume(s.block) == 0 || volume(s.block) > kMaxThreads)
    return "a block must have 1 to 1024 threads";
  if (s.grid.y > kMaxGridYz || s.grid.z > kMaxGridYz || s.grid.x > 0x7fffffffu)
    return "a grid may have at most 2^31 - 1 blocks in x and 65535 in y and z";
  if (s.cluster == 0 || s.cluster > kMaxCluster) return "a cluster must have 1 to 16 blocks";
  if (s.grid.x % s.cluster != 0) return "the grid's x size must be a multiple of the cluster size";
  if (s.dynamic_bytes > SharedMemory::kDynamicBytes)
    return "a block may have at most 227 KB of dynamic shared memory";
  return config().sm_90 ? nullptr : objection_before_sm_90(s);
}

thread_local std::unique_ptr<Worker> own_worker;

// The first launch of this host thread that need not have ended when a dependent launch comes.
thread_local uint32_t first_open = 0;

thread_local bool launches_run = true;

void work_on(Launch& l) {
  if (own_worker == nullptr) {
    own_worker = std::make_unique<Worker>();
    install_fault_handler();
  }
  own_worker->run(l);
}

}  // namespace

void close_launches() { first_open = 0; }
void dependency_wait() {
  Worker& w = *this_worker;
  if (!w.launch->has_open()) return;
  w.dependency_waits.wait(w, current_thread());
  w.launch->waited = true;
}

bool runs() { return launches_run; }
void set_runs(bool runs) { launches_run = runs; }

Config& config() {
  static Config c = [] {
    Config d;
    d.fused = !checked();
    return d;
  }();
  return c;
}

void Worker::build_threads() {
  const LaunchShape& s = launch->shape;
  threads_per_block = static_cast<unsigned>(volume(s.block));
  warps_per_block = (threads_per_block + 31) / 32;
  blocks.assign(s.cluster, Block{});
  warps.assign(size_t{s.cluster} * warps_per_block, Warp{});
  threads = std::make_unique<Thread[]>(warps.size() * 32);
  for (unsigned rank = 0; rank < s.cluster; ++rank) {
    Block& b = blocks[rank];
    b.rank = rank;
    b.threads = threads_per_block;
    b.warps = warps_per_block;
    b.first_warp = rank * warps_per_block;
    for (unsigned i = 0; i < warps_per_block; ++i) {
      Warp& w = warps[b.first_warp + i];
      w.index = b.first_warp + i;
      w.threads = &threads[size_t{w.index} * 32];
      for (unsigned lane = 0; lane < 32; ++lane) {
        Thread& t = w.threads[lane];
        const unsigned id = i * 32 + lane;
        t.index = {id % s.block.x, id / s.block.x % s.block.y, id / s.block.x / s.block.y};
        t.block = &b;
        t.warp = &w;
        t.lane = static_cast<uint16_t>(lane);
        t.linear = static_cast<uint16_t>(id);
      }
    }
  }
}

void Worker::set_up(Launch& l) {
  const dim3 old = launch_block_;
  launch = &l;
  config = l.config;
  this_shape = &l.shape;
  stacks.set_size(config.stack);
  shared.begin_launch(l.shape.cluster, l.shape.dynamic_bytes, config.poison);
  const bool same = blocks.size() == l.shape.cluster && old.x == l.shape.block.x &&
                    old.y == l.shape.block.y && old.z == l.shape.block.z;
  if (!same) build_threads();
  launch_block_ = l.shape.block;
  for (Block& b : blocks) b.shared = shared.block(b.rank);
  for (Warp& w : warps) w.ready = 0;
  ready.reset(warps.data(), static_cast<unsigned>(warps.size()), config.schedule);
}

bool Worker::start_next_group() {
  const uint64_t g = launch->next_group.fetch_add(1, std::memory_order_relaxed);
  if (g >= launch->groups) return false;
  // By group, so that a schedule can be repeated whatever OS thread runs the group.
  ready.seed(config.seed * 0x9E3779B97F4A7C15u ^ (g + 1) * 0xD1B54A32D192ED03u);
  start_group(g);
  return true;
}

void Worker::start_group(uint64_t group) {
  const dim3& grid = launch->shape.grid;
  live = static_cast<unsigned>(blocks.size()) * threads_per_block;
  cluster_arrived = 0;
  first_epoch = ++cluster_epoch;
  async_order.clear();
  dependency_waits.clear();
  shared.begin_group();
  for (Block& b : blocks) {
    b.linear = group * blocks.size() + b.rank;
    b.index = {static_cast<unsigned>(b.linear % grid.x),
               static_cast<unsigned>(b.linear / grid.x % grid.y),
               static_cast<unsigned>(b.linear / grid.x / grid.y)};
    b.live = threads_per_block;
    b.arrived = 0;
    b.epoch = 0;
    for (unsigned i = 0; i < b.warps; ++i) {
      Warp& w = warps[b.first_warp + i];
      const unsigned lanes = threads_per_block - i * 32;
      w.live = lanes >= 32 ? ~0u : (1u << lanes) - 1;
      w.pending = 0;
      w.epoch = 0;
      ready.add(w, w.live);
      for (unsigned lane = 0; lane < 32; ++lane) w.threads[lane].state = State::kFresh;
    }
  }
}

Status run_grid(const LaunchShape& shape, const Invocation& invocation) {
  static std::mutex one_launch_at_a_time;
  static uint32_t launches = 0;
  if (const char* why = objection(shape)) return invalid(why);
  const uint64_t blocks = volume(shape.grid);
  if (blocks == 0) return {};
  note_launch(invocation.kernel);
  if (!runs()) return {};
  const std::lock_guard lock(one_launch_at_a_time);
  const uint32_t id = ++launches;
  if (!shape.dependent || first_open == 0) first_open = id;
  Launch l{shape, invocation, id, first_open, blocks / shape.cluster, config()};
  const size_t before = findings();
  run_on_threads(l, work_on);
  check::launch_ends(l);
  return status_since(before);
}

}  // namespace tigon::simt
