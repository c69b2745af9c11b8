// SPDX-License-Identifier: Apache-2.0
// Where the executor tells the memory checker what happens. Nothing comes of it in a process that
// does not check accesses.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tigon::simt {

struct Launch;
struct Warp;
struct Worker;

namespace check {

extern constinit bool enabled;  // by set_checked()

void forbid(void* p, size_t bytes);    // no access is right
void undefine(void* p, size_t bytes);  // may be written; not initialised, no history
void mark_initialized(void* p, size_t bytes);
void mark_in_flight(void* p, size_t bytes, const void* pc);  // not initialised until a copy lands
void access_range(const void* p, size_t bytes, bool write, const void* pc);
void prefetch_range(const void* p, size_t bytes, const void* pc);
void atomic_access(void* p, size_t bytes, const void* pc);
void peer_begun(const Worker& w, const void* pc);  // another block's shared memory is used
void mbarrier_access(uint64_t* mbarrier, bool init, const void* pc);
void copy_signals(const uint64_t* mbarrier, const void* pc);
void copy_overwrites(const void* p, size_t bytes, const void* pc);  // by a bulk copy
void launch_ends(Launch& l);
void worker_ends(Worker& w);    // has no more blocks of the launch
void end_of_interval(Warp& w);  // the warp has synchronised: its requests are complete
void count_barrier();

}  // namespace check
}  // namespace tigon::simt
