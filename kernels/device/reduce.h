// SPDX-License-Identifier: Apache-2.0
// Reductions over a warp and over a block. The order of operations is the same on the GPU and on
// the host, so results are deterministic.
#pragma once
#include <cstring>
#include <type_traits>

#include "kernels/device/platform.h"

namespace tigon {

// Operations. They must be commutative and stateless; T is trivially copyable and a multiple of 4
// bytes, e.g. the (maximum, sum) pair of an online softmax.
struct Sum {
  template <class T>
  TIGON_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
// A NaN on either side gives NaN: fmaxf would swallow it, and a broken row would look whole.
struct Max {
  template <class T>
  TIGON_DEVICE T operator()(T a, T b) const {
    const T larger = b > a ? b : a;
    return b != b ? b : larger;
  }
};

namespace device {

template <class T>
TIGON_DEVICE T shuffle_xor(T v, int lanes) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
  unsigned words[sizeof(T) / 4];
  memcpy(words, &v, sizeof v);
  TIGON_UNROLL
  for (unsigned& w : words) w = __shfl_xor_sync(0xffffffffu, w, lanes);
  memcpy(&v, words, sizeof v);
  return v;
}

#if !TIGON_GPU
// The butterfly below over the 32 lanes' values side by side. Not instrumented: these are the
// executor's copies.
template <int kLanes, class T, class Op>
__attribute__((no_sanitize("thread"))) void butterfly(const void* in, void* out) {
  T a[32], b[32];
  memcpy(a, in, sizeof a);
  for (int step = kLanes / 2; step > 0; step /= 2) {
    for (int lane = 0; lane < 32; ++lane) b[lane] = Op{}(a[lane], a[lane ^ step]);
    memcpy(a, b, sizeof a);
  }
  memcpy(out, a, sizeof a);
}
#endif

}  // namespace device

// Combines the values of each aligned group of kLanes lanes; every lane gets the result. All 32
// lanes of the warp must call it.
template <int kLanes = 32, class T, class Op>
TIGON_DEVICE T warp_reduce(T v, Op op) {
#if !TIGON_GPU
  T r;
  if (simt::warp_fused(&v, &r, sizeof v, device::butterfly<kLanes, T, Op>)) return r;
#endif
  TIGON_UNROLL
  for (int step = kLanes / 2; step > 0; step /= 2) v = op(v, device::shuffle_xor(v, step));
  return v;
}

template <class T>
TIGON_DEVICE T warp_sum(T v) {
  return warp_reduce(v, Sum{});
}

namespace device {

// The values of kWarps warps from warp `first` on, joined through one barrier of the block.
template <int kWarps, class T, class Op>
TIGON_DEVICE T join_warps(T v, Op op, T* scratch, int first = 0) {
  static_assert(kWarps > 1 && kWarps <= 32);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  if constexpr ((kWarps & (kWarps - 1)) == 0) {
    return warp_reduce<kWarps>(scratch[first + threadIdx.x % kWarps], op);
  } else {
    T all = scratch[first];
    TIGON_UNROLL
    for (int w = 1; w < kWarps; ++w) all = op(all, scratch[first + w]);
    return all;
  }
}

}  // namespace device

// Combines the values of all kThreads threads of the block; every thread gets the result. `scratch`
// is a shared array of kThreads / 32 elements. May be called again at once: the first barrier lets
// the readers of the previous call finish.
template <int kThreads, class T, class Op>
TIGON_DEVICE T block_reduce(T v, Op op, T* scratch) {
  static_assert(kThreads % 32 == 0);
  v = warp_reduce(v, op);
  if constexpr (kThreads == 32) {
    return v;
  } else {
    __syncthreads();
    return device::join_warps<kThreads / 32>(v, op, scratch);
  }
}
template <int kThreads, class T, class Op>
TIGON_DEVICE T block_reduce(T v, Op op) {
  TIGON_SHARED(T, scratch, [kThreads / 32]);
  return block_reduce<kThreads>(v, op, scratch);
}
// The same bits through one barrier, of each kThreads threads of a block of kGroups times as many.
// `parity` alternates from call to call, 0 first: a thread that passes the next call's barrier has
// read the values of this one.
template <int kThreads, int kGroups = 1, class T, class Op>
TIGON_DEVICE T block_reduce_alternating(T v, Op op, int parity) {
  static_assert(kThreads % 32 == 0 && kThreads > 32);
  constexpr int kWarps = kThreads / 32;
  TIGON_SHARED(T, scratch, [2][kGroups * kWarps]);
  v = warp_reduce(v, op);
  const int group = kGroups == 1 ? 0 : static_cast<int>(threadIdx.x) / kThreads;
  return device::join_warps<kWarps>(v, op, scratch[parity], group * kWarps);
}

// join(a, b) joins two values, join.warp(v) those of a warp; T{} changes no value that it is joined
// with. Through one barrier: every thread must be done with `warps` of a call before.
template <int kThreads, class T, class Join>
TIGON_DEVICE T block_join(T v, const Join& join, T (&warps)[kThreads / 32]) {
  const unsigned lane = threadIdx.x % 32;
  v = join.warp(v);
  if (lane == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  return join.warp(lane < kThreads / 32 ? warps[lane] : T{});
}

template <int kThreads, class T>
TIGON_DEVICE T block_sum(T v) {
  return block_reduce<kThreads>(v, Sum{});
}

}  // namespace tigon
