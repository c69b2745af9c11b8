// SPDX-License-Identifier: Apache-2.0
// Kernels of patterns.h.
#include "kernels/simt/tests/patterns.h"

#include "kernels/device/device.h"

namespace tigon::simt_tests {

namespace {

TIGON_DEVICE int global_thread() { return static_cast<int>(blockIdx.x * 64 + threadIdx.x); }
TIGON_DEVICE int all_threads() { return static_cast<int>(gridDim.x) * 64; }

TIGON_KERNEL(64) copy_words_kernel(const float* x, float* y, int n) {
  for (int i = global_thread(); i < n; i += all_threads()) store(y + i, load(x + i));
}

TIGON_KERNEL(64) copy_vectors_kernel(const float* x, float* y, int n) {
  for (int i = global_thread(); i < n / 4; i += all_threads())
    store16(y + 4 * i, load16(x + 4 * i));
}

TIGON_KERNEL(64) gather_kernel(int stride, const float* x, float* y) {
  const int i = global_thread();
  y[i] = x[i * stride];
}

TIGON_KERNEL(64) triangle_kernel(const float* x, float* y) {
  float sum = 0.0f;
  for (unsigned i = 0; i < threadIdx.x; ++i) sum += load(x + i);
  y[threadIdx.x] = sum;
}

// For its name only: it has a function of its own inside, as a lambda is that is not inlined.
[[gnu::used]] TIGON_KERNEL(64) nested_kernel(int* x) {
  const auto increment = [](auto v) __attribute__((noinline)) { return v + 1; };
  *x = increment(*x);
}

template <class T>
TIGON_KERNEL(64)
shared_kernel(int stride, float* y) {
  TIGON_SHARED(float4, memory, [64 * 33 / 4]);
  T* mine = reinterpret_cast<T*>(reinterpret_cast<float*>(&memory[0]) +
                                 static_cast<int>(threadIdx.x % 32) * stride);
  if (threadIdx.x >= 32) return;
  if constexpr (sizeof(T) == 16) {
    store16(reinterpret_cast<float*>(mine), Vec<float>{{1.0f, 1.0f, 1.0f, 1.0f}});
  } else {
    store(mine, T{1});
    __syncwarp();  // so that the compiler loads what it has just stored
    y[threadIdx.x] = static_cast<float>(load(mine));
  }
}

TIGON_KERNEL(64) shared_broadcast_kernel(float* y) {
  TIGON_SHARED(float, memory, [32]);
  if (threadIdx.x == 0) store(&memory[7], 1.0f);
  __syncthreads();
  y[threadIdx.x] = load(&memory[7]);
}

TIGON_KERNEL(64) barriers_kernel(int barriers, int* sum) {
  for (int i = 0; i < barriers; ++i) __syncthreads();
  atomicAdd(sum, 1);
}

}  // namespace

Status copy_words(int blocks, const float* x, float* y, int n) {
  return launch({.grid = static_cast<unsigned>(blocks), .block = 64}, copy_words_kernel, x, y, n);
}
Status copy_vectors(int blocks, const float* x, float* y, int n) {
  return launch({.grid = static_cast<unsigned>(blocks), .block = 64}, copy_vectors_kernel, x, y, n);
}
Status gather(int blocks, int stride, const float* x, float* y) {
  return launch({.grid = static_cast<unsigned>(blocks), .block = 64}, gather_kernel, stride, x, y);
}
Status triangle(const float* x, float* y) {
  return launch({.grid = 1, .block = 64}, triangle_kernel, x, y);
}
Status shared_words(int bytes, int stride, float* y) {
  const auto kernel = bytes == 4   ? shared_kernel<float>
                      : bytes == 8 ? shared_kernel<double>
                                   : shared_kernel<float4>;
  return launch({.grid = 1, .block = 64}, kernel, stride, y);
}
Status shared_broadcast(float* y) {
  return launch({.grid = 1, .block = 64}, shared_broadcast_kernel, y);
}
Status barriers_and_atomics(int blocks, int barriers, int* sum) {
  return launch({.grid = static_cast<unsigned>(blocks), .block = 64}, barriers_kernel, barriers,
                sum);
}

}  // namespace tigon::simt_tests
