// SPDX-License-Identifier: Apache-2.0
// CUDA's device spelling for a host compiler: the names below mean in a kernel what the CUDA
// programming guide says, executed by the fibers of kernels/simt. No CUDA header is needed.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/simt/kernel_api.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

#define threadIdx (::tigon::simt::thread_index())
#define blockIdx (::tigon::simt::block_index())
#define blockDim (::tigon::simt::block_dim())
#define gridDim (::tigon::simt::grid_dim())
inline constexpr int warpSize = 32;

// Force-inlined, so that the address of a call, from which findings derive their source line, lies
// in the kernel.
#define TIGON_SIMT_WHERE ::tigon::simt::Location where = ::tigon::simt::Location::current()

__forceinline__ void __syncthreads(TIGON_SIMT_WHERE) { ::tigon::simt::block_sync(where); }
__forceinline__ void __threadfence() {}
__forceinline__ void __threadfence_block() {}
__forceinline__ void __threadfence_system() {}
[[noreturn]] __forceinline__ void __trap() { ::tigon::simt::trap("__trap()"); }

namespace tigon::simt {
template <class T>
__forceinline__ uint64_t to_word(T v) {
  static_assert((sizeof(T) == 4 || sizeof(T) == 8) && std::is_trivially_copyable_v<T>);
  uint64_t r = 0;
  __builtin_memcpy(&r, &v, sizeof(T));
  return r;
}
template <class T>
__forceinline__ T from_word(uint64_t r) {
  T v;
  __builtin_memcpy(&v, &r, sizeof(T));
  return v;
}
template <class T>
__forceinline__ T shuffle(WarpOp op, unsigned mask, T v, int arg, int width) {
  return from_word<T>(warp_op(op, mask, to_word(v), arg, width));
}
__forceinline__ unsigned vote(WarpOp op, unsigned mask, uint64_t v) {
  return static_cast<unsigned>(warp_op(op, mask, v, 0, 32));
}
}  // namespace tigon::simt

__forceinline__ void __syncwarp(unsigned mask = 0xffffffffu) {
  ::tigon::simt::vote(::tigon::simt::WarpOp::kSync, mask, 0);
}
template <class T>
__forceinline__ T __shfl_sync(unsigned mask, T v, int lane, int width = 32) {
  return ::tigon::simt::shuffle(::tigon::simt::WarpOp::kIndex, mask, v, lane, width);
}
template <class T>
__forceinline__ T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  return ::tigon::simt::shuffle(::tigon::simt::WarpOp::kUp, mask, v, static_cast<int>(delta),
                                width);
}
template <class T>
__forceinline__ T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  return ::tigon::simt::shuffle(::tigon::simt::WarpOp::kDown, mask, v, static_cast<int>(delta),
                                width);
}
template <class T>
__forceinline__ T __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32) {
  return ::tigon::simt::shuffle(::tigon::simt::WarpOp::kXor, mask, v, lanes, width);
}
__forceinline__ unsigned __ballot_sync(unsigned mask, int predicate) {
  return ::tigon::simt::vote(::tigon::simt::WarpOp::kBallot, mask, predicate != 0);
}
__forceinline__ int __any_sync(unsigned mask, int predicate) {
  return static_cast<int>(::tigon::simt::vote(::tigon::simt::WarpOp::kAny, mask, predicate != 0));
}
__forceinline__ int __all_sync(unsigned mask, int predicate) {
  return static_cast<int>(::tigon::simt::vote(::tigon::simt::WarpOp::kAll, mask, predicate != 0));
}
__forceinline__ unsigned __reduce_add_sync(unsigned mask, unsigned v) {
  return ::tigon::simt::vote(::tigon::simt::WarpOp::kAdd, mask, v);
}
__forceinline__ unsigned __reduce_min_sync(unsigned mask, unsigned v) {
  return ::tigon::simt::vote(::tigon::simt::WarpOp::kMin, mask, v);
}
__forceinline__ unsigned __reduce_max_sync(unsigned mask, unsigned v) {
  return ::tigon::simt::vote(::tigon::simt::WarpOp::kMax, mask, v);
}
__forceinline__ unsigned __reduce_and_sync(unsigned mask, unsigned v) {
  return ::tigon::simt::vote(::tigon::simt::WarpOp::kAnd, mask, v);
}
__forceinline__ unsigned __reduce_or_sync(unsigned mask, unsigned v) {
  return ::tigon::simt::vote(::tigon::simt::WarpOp::kOr, mask, v);
}
template <class T>
__forceinline__ unsigned __match_any_sync(unsigned mask, T v) {
  return ::tigon::simt::vote(::tigon::simt::WarpOp::kMatchAny, mask, ::tigon::simt::to_word(v));
}
__forceinline__ unsigned __activemask() { return ::tigon::simt::active_mask(); }

#define TIGON_SIMT_ATOMIC(name, op)                                            \
  template <class T>                                                           \
  __forceinline__ T name(T* p, std::type_identity_t<T> v) {                    \
    return ::tigon::simt::atomic_update<T>(::tigon::simt::AtomicOp::op, p, v); \
  }
TIGON_SIMT_ATOMIC(atomicAdd, kAdd)
TIGON_SIMT_ATOMIC(atomicMin, kMin)
TIGON_SIMT_ATOMIC(atomicMax, kMax)
TIGON_SIMT_ATOMIC(atomicExch, kExchange)
TIGON_SIMT_ATOMIC(atomicAnd, kAnd)
TIGON_SIMT_ATOMIC(atomicOr, kOr)
TIGON_SIMT_ATOMIC(atomicXor, kXor)
#undef TIGON_SIMT_ATOMIC
template <class T>
__forceinline__ T atomicCAS(T* p, std::type_identity_t<T> expected,
                            std::type_identity_t<T> desired) {
  return ::tigon::simt::atomic_compare_exchange<T>(p, expected, desired);
}

template <class T>
__forceinline__ T __ldg(const T* p) {
  return *p;
}
__forceinline__ int min(int a, int b) { return a < b ? a : b; }
__forceinline__ int max(int a, int b) { return a > b ? a : b; }
__forceinline__ unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
__forceinline__ unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
__forceinline__ long min(long a, long b) { return a < b ? a : b; }
__forceinline__ long max(long a, long b) { return a > b ? a : b; }
__forceinline__ unsigned long min(unsigned long a, unsigned long b) { return a < b ? a : b; }
__forceinline__ unsigned long max(unsigned long a, unsigned long b) { return a > b ? a : b; }
__forceinline__ int __popc(unsigned v) { return __builtin_popcount(v); }
__forceinline__ int __clz(int v) { return v == 0 ? 32 : __builtin_clz(static_cast<unsigned>(v)); }
__forceinline__ int __ffs(int v) { return __builtin_ffs(v); }
__forceinline__ float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
__forceinline__ float __int_as_float(int v) {
  return ::tigon::simt::from_word<float>(static_cast<unsigned>(v));
}
__forceinline__ int __float_as_int(float v) { return static_cast<int>(::tigon::simt::to_word(v)); }
__forceinline__ float __uint_as_float(unsigned v) { return ::tigon::simt::from_word<float>(v); }
__forceinline__ unsigned __float_as_uint(float v) {
  return static_cast<unsigned>(::tigon::simt::to_word(v));
}
