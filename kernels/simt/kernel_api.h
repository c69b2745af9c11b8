// SPDX-License-Identifier: Apache-2.0
// What kernel code calls: the entry points of the executor behind the CUDA spelling. Everything
// here runs on the fiber of one CUDA thread.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/signature/status.h"
#include "kernels/simt/cuda_types.h"

// Two calls must not become one, or their source lines are lost (g++ has command-line options for
// that).
#if defined(__clang__)
#define TIGON_SIMT_NOMERGE [[clang::nomerge]]
#else
#define TIGON_SIMT_NOMERGE
#endif

namespace tigon::simt {

// A source line. (std::source_location is missing under clang 14 with libstdc++ 12.)
struct Location {
  const char* file = "";
  unsigned line = 0;
  static constexpr Location current(const char* file = __builtin_FILE(),
                                    unsigned line = __builtin_LINE()) {
    return {file, line};
  }
  constexpr bool operator==(const Location&) const = default;
};

// The part of the executor's state that kernel code reads, through calls, so that the checker does
// not take it for an access of the kernel.
struct BlockIds {
  uint3 index;
  unsigned rank = 0;  // in its cluster
  char* shared = nullptr;
};
struct ThreadIds {
  uint3 index;
  const BlockIds* block = nullptr;
};
struct LaunchShape {
  dim3 grid, block;
  unsigned cluster = 1;
  size_t dynamic_bytes = 0;
  bool dependent = false;  // may start before the launch before it has ended
};

extern constinit thread_local ThreadIds* current_ids;         // the running CUDA thread, or nullptr
extern constinit thread_local const LaunchShape* this_shape;  // of the running launch

__attribute__((const)) uint3 thread_index();
__attribute__((const)) uint3 block_index();
__attribute__((const)) dim3 block_dim();
__attribute__((const)) dim3 grid_dim();

// Barriers and clusters.
TIGON_SIMT_NOMERGE void block_sync(Location where);
TIGON_SIMT_NOMERGE void cluster_sync();
unsigned cluster_rank();
unsigned cluster_size();
void* cluster_map(void* shared, unsigned rank);

// Warp collectives; values of 4 or 8 bytes travel in a uint64_t.
enum class WarpOp : uint8_t {
  kIndex,
  kUp,
  kDown,
  kXor,
  kBallot,
  kAny,
  kAll,
  kSync,
  kAdd,
  kMin,
  kMax,
  kAnd,
  kOr,
  kMatchAny,
  kFused,
};
TIGON_SIMT_NOMERGE uint64_t warp_op(WarpOp op, uint32_t mask, uint64_t value, int arg, int width);
uint32_t active_mask();

// One suspension for a whole butterfly: combine(in, out) sees the values of the 32 lanes side by
// side. False where that is switched off, the warp is not full or the value is too large; the
// caller then shuffles.
inline constexpr unsigned kMaxFusedBytes = 32;
TIGON_SIMT_NOMERGE bool warp_fused(const void* in, void* out, unsigned bytes,
                                   void (*combine)(const void*, void*));

// Shared memory. A site is one declaration of a shared array; its offset is the same in every block
// of a launch.
struct SharedSite {
  uint32_t launch = 0;
  uint32_t offset = 0;
};
void* shared_array(SharedSite& site, size_t bytes, size_t align);
void* dynamic_shared();

// Atomics on int, unsigned, long long, unsigned long long, float and double, where CUDA has them.
enum class AtomicOp : uint8_t { kAdd, kMin, kMax, kExchange, kAnd, kOr, kXor };
template <class T>
T atomic_update(AtomicOp op, T* p, T value);
template <class T>
T atomic_compare_exchange(T* p, T expected, T desired);

// Asynchronous copies and mbarriers; a copy lands as late as it may.
void mbarrier_init(uint64_t* bar, unsigned count);
void mbarrier_fence_init();
void bulk_fence();
void mbarrier_arrive(uint64_t* bar, unsigned expected_bytes);
void mbarrier_wait(uint64_t* bar, unsigned parity);
void prefetch_bulk(const void* global, unsigned bytes);
void bulk_copy(void* shared, const void* global, unsigned bytes, uint64_t* bar);
void store_async(uint32_t* shared, uint32_t value, uint64_t* bar, unsigned rank);
void async_copy(void* shared, const void* global, unsigned bytes);
void async_commit();
void async_wait(int pending_groups);

// In a dependent launch: the launch before it has ended, and its writes are seen.
void dependency_wait();

// Ends the launch with a finding that names this thread.
TIGON_SIMT_NOMERGE [[noreturn]] void misaligned(const void* p);
TIGON_SIMT_NOMERGE [[noreturn]] void trap(const char* what);

// Runs the grid and returns when it has finished. `invoke(closure)` calls the kernel once.
struct Invocation {
  void (*invoke)(const void*);
  const void* closure;
  const void* kernel;  // address, for its name
};
Status run_grid(const LaunchShape& shape, const Invocation& invocation);

}  // namespace tigon::simt
