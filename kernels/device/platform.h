// SPDX-License-Identifier: Apache-2.0
// The compiler at hand: nvcc, or a host compiler whose kernels run on kernels/simt. Kernel
// attribute, shared arrays and the few macros that plain CUDA spelling cannot cover.
#pragma once
#include "kernels/signature/dtype.h"
#include "kernels/signature/status.h"

#if defined(__CUDACC__)

#include <cuda_runtime.h>
#define TIGON_GPU 1

// Attribute of a kernel: TIGON_KERNEL(threads per block[, blocks per multiprocessor]) name(...)
// {...}
// How many blocks pay for fewer registers was measured on devices of 2048 threads. Some others have
// 1536, and where a compiler allocates registers in another way, the same bound spills: there a
// block may have all, because without any bound nvcc chooses one. A few kernels of f32 still spill
// there: eight vectors a thread in blocks of 512 threads or more, whose size is the limit.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900
#define TIGON_KERNEL(...) __global__ void __launch_bounds__(__VA_ARGS__)
#else
namespace tigon {
constexpr int one_block(int = 1) { return 1; }
}  // namespace tigon
#define TIGON_KERNEL(threads, ...) \
  __global__ void __launch_bounds__(threads, ::tigon::one_block(__VA_ARGS__))
#endif
// A function that kernels call.
#define TIGON_DEVICE __device__ __forceinline__
#define TIGON_UNROLL _Pragma("unroll")
// A static shared array: TIGON_SHARED(float, partial, [32]);
#define TIGON_SHARED(T, name, ...) __shared__ T name __VA_ARGS__
// The dynamic shared array, 128-byte aligned: TIGON_DYNAMIC_SHARED(float, tile);
#define TIGON_DYNAMIC_SHARED(T, name)                                    \
  extern __shared__ __align__(128) unsigned char tigon_dynamic_shared[]; \
  T* name = reinterpret_cast<T*>(tigon_dynamic_shared)

#else

#include "kernels/simt/cuda_spelling.h"
#define TIGON_GPU 0

#define TIGON_KERNEL(...) void
// Inlined always: g++ does not instrument a struct that is passed by value straight from memory.
#define TIGON_DEVICE inline __attribute__((always_inline))
#if defined(__clang__)
#define TIGON_UNROLL
#else
// Short loops over the values of a vector are left to the vectoriser, which comes after unrolling.
#define TIGON_UNROLL _Pragma("GCC unroll 1")
#endif
#define TIGON_SHARED(T, name, ...)                                     \
  static thread_local constinit ::tigon::simt::SharedSite name##_site; \
  auto& name = *static_cast<std::remove_reference_t<T __VA_ARGS__>*>(  \
      ::tigon::simt::shared_array(name##_site, sizeof(T __VA_ARGS__), alignof(T)))
#define TIGON_DYNAMIC_SHARED(T, name) T* name = static_cast<T*>(::tigon::simt::dynamic_shared())

#endif
