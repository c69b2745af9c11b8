// SPDX-License-Identifier: Apache-2.0
// Traffic counters: accesses of the lanes of a warp are put together to the requests that a GPU
// would make of them. Lanes run one after the other here, so the k-th access of each lane at one
// instruction between two synchronisations of the warp is taken for one request.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tigon::simt {

struct Launch;
struct Warp;
struct Worker;

namespace traffic {

// An access of `bytes` bytes at an offset of the checker's arena.
void note(const Warp& w, unsigned lane, uint32_t offset, size_t bytes, bool write, bool shared,
          const void* pc);
void count_atomic(const void* pc);
void count_barrier();
// The warp has synchronised, or its last lane has exited: its requests are complete.
void end_of_interval(const Warp& w);
// On the OS thread of the worker, when it has no more blocks.
void worker_ends(const Worker& w);
void launch_ends(const Launch& l);

}  // namespace traffic
}  // namespace tigon::simt
