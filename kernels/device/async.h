// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies from global to shared memory: cp.async (sm_80) and, where kHasBulkCopy, bulk
// copies and stores to other blocks of a cluster that complete on an mbarrier (sm_90).
#pragma once
#include <cstdint>

#include "kernels/device/platform.h"

namespace tigon {

// In shared memory, 8-byte aligned.
struct alignas(8) Mbarrier {
  uint64_t state;
};

#if TIGON_GPU

#if __CUDA_ARCH__ >= 900
inline constexpr bool kHasBulkCopy = true;
#else
inline constexpr bool kHasBulkCopy = false;
#endif

namespace device {
TIGON_DEVICE uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
}  // namespace device

// Copies 4, 8 or 16 bytes; both addresses must be multiples of the size.
template <int kBytes>
TIGON_DEVICE void async_copy(void* shared, const void* global) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(device::shared_address(shared)),
                 "l"(global)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(device::shared_address(shared)),
                 "l"(global), "n"(kBytes)
                 : "memory");
}
// Makes the thread's copies since the last commit a group.
TIGON_DEVICE void async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most kPending of the thread's latest groups have not landed. Other threads see the
// data after a barrier.
template <int kPending>
TIGON_DEVICE void async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Asks for `bytes` (a multiple of 16, as p) to be in L2 soon; nothing where the GPU cannot.
TIGON_DEVICE void prefetch_bulk(const void* p, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(p), "r"(bytes) : "memory");
#endif
}

#if __CUDA_ARCH__ >= 900
// By one thread; `count` arrivals complete a phase. Follow with mbarrier_fence_init and a barrier.
TIGON_DEVICE void mbarrier_init(Mbarrier* b, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(device::shared_address(b)),
               "r"(count)
               : "memory");
}
TIGON_DEVICE void mbarrier_fence_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
TIGON_DEVICE void mbarrier_arrive(Mbarrier* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(device::shared_address(b))
               : "memory");
}
// Arrives and adds `bytes` to what the phase waits for.
TIGON_DEVICE void mbarrier_arrive_expect(Mbarrier* b, unsigned bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(device::shared_address(b)),
      "r"(bytes)
      : "memory");
}
// Waits until the phase of that parity (0 first) has completed.
TIGON_DEVICE void mbarrier_wait(Mbarrier* b, unsigned parity) {
  asm volatile(
      "{\n\t"
      ".reg .pred done;\n\t"
      "WAIT_%=:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
      "@done bra DONE_%=;\n\t"
      "bra WAIT_%=;\n\t"
      "DONE_%=:\n\t"
      "}" ::"r"(device::shared_address(b)),
      "r"(parity)
      : "memory");
}
// Copies `bytes` (a multiple of 16, as both addresses) and counts them on `b` when they land.
TIGON_DEVICE void bulk_copy(void* shared, const void* global, unsigned bytes, Mbarrier* b) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(device::shared_address(shared)),
      "l"(global), "r"(bytes), "r"(device::shared_address(b))
      : "memory");
}
// Every thread that has read what a bulk copy will overwrite calls it, before a barrier and the
// copy. The barrier alone does not order those reads before the copy.
TIGON_DEVICE void bulk_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Stores to the same shared variable of the block with that rank and counts the 4 bytes on that
// block's `b` when they land: who waits there needs no barrier of the cluster.
TIGON_DEVICE void store_async(uint32_t* shared, uint32_t value, Mbarrier* b, unsigned rank) {
  asm volatile(
      "{\n\t"
      ".reg .u32 to, on;\n\t"
      "mapa.shared::cluster.u32 to, %0, %3;\n\t"
      "mapa.shared::cluster.u32 on, %2, %3;\n\t"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [to], %1, [on];\n\t"
      "}" ::"r"(device::shared_address(shared)),
      "r"(value), "r"(device::shared_address(b)), "r"(rank)
      : "memory");
}
#else
// Not on this GPU: guard calls with if constexpr (kHasBulkCopy). Defined so that both branches
// compile.
TIGON_DEVICE void mbarrier_init(Mbarrier*, unsigned) { __trap(); }
TIGON_DEVICE void mbarrier_fence_init() { __trap(); }
TIGON_DEVICE void mbarrier_arrive(Mbarrier*) { __trap(); }
TIGON_DEVICE void mbarrier_arrive_expect(Mbarrier*, unsigned) { __trap(); }
TIGON_DEVICE void mbarrier_wait(Mbarrier*, unsigned) { __trap(); }
TIGON_DEVICE void bulk_copy(void*, const void*, unsigned, Mbarrier*) { __trap(); }
TIGON_DEVICE void bulk_fence() { __trap(); }
TIGON_DEVICE void store_async(uint32_t*, uint32_t, Mbarrier*, unsigned) { __trap(); }
#endif

#else

inline constexpr bool kHasBulkCopy = true;

template <int kBytes>
TIGON_DEVICE void async_copy(void* shared, const void* global) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  simt::async_copy(shared, global, kBytes);
}
TIGON_DEVICE void async_commit() { simt::async_commit(); }
template <int kPending>
TIGON_DEVICE void async_wait() {
  simt::async_wait(kPending);
}
TIGON_DEVICE void prefetch_bulk(const void* p, unsigned bytes) { simt::prefetch_bulk(p, bytes); }
TIGON_DEVICE void mbarrier_init(Mbarrier* b, unsigned count) {
  simt::mbarrier_init(&b->state, count);
}
TIGON_DEVICE void mbarrier_fence_init() { simt::mbarrier_fence_init(); }
TIGON_DEVICE void bulk_fence() { simt::bulk_fence(); }
TIGON_DEVICE void mbarrier_arrive(Mbarrier* b) { simt::mbarrier_arrive(&b->state, 0); }
TIGON_DEVICE void mbarrier_arrive_expect(Mbarrier* b, unsigned bytes) {
  simt::mbarrier_arrive(&b->state, bytes);
}
TIGON_DEVICE void mbarrier_wait(Mbarrier* b, unsigned parity) {
  simt::mbarrier_wait(&b->state, parity);
}
TIGON_DEVICE void bulk_copy(void* shared, const void* global, unsigned bytes, Mbarrier* b) {
  simt::bulk_copy(shared, global, bytes, &b->state);
}
TIGON_DEVICE void store_async(uint32_t* shared, uint32_t value, Mbarrier* b, unsigned rank) {
  simt::store_async(shared, value, &b->state, rank);
}

#endif

}  // namespace tigon
