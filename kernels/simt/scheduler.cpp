// SPDX-License-Identifier: Apache-2.0
// Which fiber runs: suspending and resuming CUDA threads, their end, and dead-locks.
#include <new>

#include "kernels/simt/check.h"
#include "kernels/simt/report.h"
#include "kernels/simt/sanitizer.h"
#include "kernels/simt/worker.h"

// Where a debugger breaks; it finds the kernel's address in the first argument.
extern "C" __attribute__((noinline)) void tigon_debugger_stop(const void* kernel) {
  asm volatile("" : : "r"(kernel) : "memory");
}

namespace tigon::simt {

constinit thread_local ThreadIds* current_ids = nullptr;
constinit thread_local const LaunchShape* this_shape = nullptr;
constinit thread_local Worker* this_worker = nullptr;

uint3 thread_index() { return current_ids->index; }
uint3 block_index() { return current_ids->block->index; }
dim3 block_dim() { return this_shape->block; }
dim3 grid_dim() { return this_shape->grid; }

namespace {
void fiber_entry() { this_worker->thread_loop(); }

bool is_chosen(const Config& c, const Thread& t) {
  const uint3& at = t.block->index;
  return t.linear == c.stop_thread && at.x == c.stop_block[0] && at.y == c.stop_block[1] &&
         at.z == c.stop_block[2];
}

void run_as(Thread& t) {
  current_ids = &t;
  t.state = State::kReady;
}
}  // namespace

// For a debugger's conditions: is the running thread the chosen one?
extern "C" bool tigon_debugger_here() {
  return current_ids != nullptr && is_chosen(this_worker->config, current_thread());
}

// `to` == nullptr: the OS thread's own context. A dying fiber never comes back.
void Worker::switch_to(Context& save, Thread* to, bool dying) {
  void* fake = nullptr;
  sanitizer::leave(dying ? nullptr : &fake, to != nullptr ? to->stack : main_stack_,
                   to != nullptr ? stacks.stack_bytes() : main_stack_bytes_);
  switch_context(save, to != nullptr ? to->context : main_);
  sanitizer::enter(fake, nullptr, nullptr);
}

void Worker::make_ready(Thread& t) {
  t.state = State::kReady;
  ready.add(*t.warp, lane_bit(t));
}

void Worker::yield(Thread& t) {
  if (!ready.random() || (ready.draw() & 1) == 0) return;
  make_ready(t);
  suspend(t);
}

// Copies land when nothing else can run, or at a random moment.
Thread* Worker::next_thread() {
  if (ready.random() && !bulk_copies.empty() && ready.draw() % 16 == 0) land_one_copy();
  Thread* next = ready.take();
  while (next == nullptr && land_one_copy()) next = ready.take();
  return next;
}

void Worker::start_fiber(Thread& t) {
  t.stack = stacks.take();
  prepare(t.context, t.stack, stacks.stack_bytes(), fiber_entry);
}

void Worker::suspend(Thread& t) {
  Thread* next = t.warp->ready != 0 ? ready.take_near(*t.warp) : next_thread();
  if (next == nullptr) {
    report_deadlock(*this);
    abandon_launch();
  }
  if (next == &t) {
    t.state = State::kReady;
    return;
  }
  if (next->state == State::kFresh) start_fiber(*next);
  run_as(*next);
  switch_to(t.context, next, false);
}

void Worker::abandon_launch() {
  launch->abandoned = true;
  current_ids = nullptr;
  switch_to(never_resumed_, nullptr, true);
  __builtin_unreachable();
}

void Worker::thread_done(Thread& t) {
  t.state = State::kDone;
  Warp& w = *t.warp;
  Block& b = t.own_block();
  w.live &= ~lane_bit(t);
  --b.live;
  --live;
  if (w.live == 0) check::end_of_interval(w);
  if (b.arrived != 0 && b.arrived == b.live) {
    if (config.strict) report_early_exit(b);
    release_block(b, nullptr);
  }
  if (w.pending != 0) warp_thread_left(w, t.lane);
  if (cluster_arrived != 0 && cluster_arrived == live) finish_cluster_barrier(nullptr);
}

void Worker::group_done() {
  if (touched_peer && touched_epoch == cluster_epoch)
    add_finding(Kind::kClusterExit, touched_pc,
                "a block may exit while a peer still uses its shared memory: no cluster_sync after "
                "the last such access");
  touched_peer = false;
  check_no_copies_left();
}

// Runs one CUDA thread after the other. A finished thread's stack is taken over by the next fresh
// thread without a switch, so a kernel without barriers never switches at all.
void Worker::thread_loop() {
  const void* bottom = nullptr;  // of the stack that control came from
  size_t bytes = 0;
  sanitizer::enter(nullptr, &bottom, &bytes);
  if (main_stack_ == nullptr) {
    main_stack_ = bottom;
    main_stack_bytes_ = bytes;
  }
  for (;;) {
    if (config.stop && is_chosen(config, current_thread()))
      tigon_debugger_stop(launch->invocation.kernel);
    launch->invocation.invoke(launch->invocation.closure);
    Thread& done = current_thread();
    char* stack = done.stack;
    thread_done(done);
    Thread* next = next_thread();
    if (next == nullptr && live != 0) {
      report_deadlock(*this);
      abandon_launch();
    }
    if (next == nullptr) {
      group_done();
      if (launch->abandoned || !start_next_group()) {
        last_stack_ = stack;
        current_ids = nullptr;
        switch_to(never_resumed_, nullptr, true);
      }
      next = ready.take();
    }
    if (next->state == State::kFresh) {
      next->stack = stack;
      run_as(*next);
      continue;
    }
    stacks.give_back(stack);
    run_as(*next);
    switch_to(never_resumed_, next, true);
  }
}

void Worker::run(Launch& l) {
  this_worker = this;
  set_up(l);
  if (!start_next_group()) return;
  Thread* first = ready.take();
  start_fiber(*first);
  run_as(*first);
  main_stack_ = nullptr;
  switch_to(main_, first, false);
  current_ids = nullptr;
  if (last_stack_ != nullptr) stacks.give_back(last_stack_);
  last_stack_ = nullptr;
  if (launch->abandoned) {  // suspended fibers are never resumed
    stacks.reclaim_all();
    bulk_copies.clear();
    thread_copies.clear();
    blocks.clear();
  }
  check::worker_ends(*this);
}

}  // namespace tigon::simt
