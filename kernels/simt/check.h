// SPDX-License-Identifier: Apache-2.0
// Where the executor tells the memory checker what happens. The checker exists in the checking
// flavour only; elsewhere these are empty.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tigon::simt {

struct Launch;
struct Warp;
struct Worker;

namespace check {

#ifdef TIGON_SIMT_CHECKED
inline constexpr size_t kSharedGap = 32;  // behind every shared array
char* shared_arena_allocate(size_t bytes);
void shared_arena_free(char* p, size_t bytes);
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
#else
inline constexpr size_t kSharedGap = 0;
char* shared_arena_allocate(size_t bytes);
void shared_arena_free(char* p, size_t bytes);
inline void forbid(void*, size_t) {}
inline void undefine(void*, size_t) {}
inline void mark_initialized(void*, size_t) {}
inline void mark_in_flight(void*, size_t, const void*) {}
inline void access_range(const void*, size_t, bool, const void*) {}
inline void prefetch_range(const void*, size_t, const void*) {}
inline void atomic_access(void*, size_t, const void*) {}
inline void peer_begun(const Worker&, const void*) {}
inline void mbarrier_access(uint64_t*, bool, const void*) {}
inline void copy_signals(const uint64_t*, const void*) {}
inline void copy_overwrites(const void*, size_t, const void*) {}
inline void launch_ends(Launch&) {}
inline void worker_ends(Worker&) {}
inline void end_of_interval(Warp&) {}
inline void count_barrier() {}
#endif

}  // namespace check
}  // namespace tigon::simt
