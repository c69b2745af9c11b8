// SPDX-License-Identifier: Apache-2.0
// What the cheats on a GPU share: an honest rms_norm in f32 as work on a stream.
#pragma once
#include <cuda_runtime.h>

#include "harness/plugin/cheats/cheat.h"

namespace cheat {

inline constexpr int kThreads = 128;

// A block per row.
__global__ void rms_norm(Forward f) {
  __shared__ double sums[kThreads];
  const int64_t t = blockIdx.x;
  const float* x = f.x + t * f.x_stride;
  double sum = 0;
  for (int64_t h = threadIdx.x; h < f.columns; h += kThreads) sum += double{x[h]} * x[h];
  sums[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (double s : sums) sum += s;
  const double r = 1 / sqrt(sum / static_cast<double>(f.columns) + f.eps);
  if (threadIdx.x == 0) f.rstd[t] = static_cast<float>(r);
  for (int64_t h = threadIdx.x; h < f.columns; h += kThreads)
    f.y[t * f.y_stride + h] = static_cast<float>(x[h] * r * f.gain(h));
}

inline void start(const Forward& f, cudaStream_t stream) {
  if (f.rows > 0) rms_norm<<<static_cast<unsigned>(f.rows), kThreads, 0, stream>>>(f);
}

inline tigon_status status() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? kOk : tigon_status{TIGON_LAUNCH_FAILED, cudaGetErrorString(error)};
}

}  // namespace cheat
