// SPDX-License-Identifier: Apache-2.0
// RMSNorm forward with a tail fault: it takes four columns at a time and forgets the last one to
// three of a row whose width is no multiple of four.
#include "kernels/rms_norm/rms_norm.h"

namespace tigon::rms_norm {

constexpr int kThreads = 128;

__device__ inline float block_sum(float v) {
  __shared__ float partial[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0;
  for (int w = 0; w < kThreads / 32; ++w) sum += partial[w];
  return sum;
}

template <class P>
__global__ void __launch_bounds__(kThreads) forward_kernel(Forward<P> args) {
  using Elem = typename P::Elem;
  const int64_t columns = args.x.shape[1];
  const Elem* x = args.x.data + blockIdx.x * args.x.stride[0];
  Elem* y = args.y.data + blockIdx.x * args.y.stride[0];
  float squares = 0;
  for (int64_t h = 4 * threadIdx.x; h + 4 <= columns; h += 4 * kThreads)
    for (int k = 0; k < 4; ++k) {
      const float v = static_cast<float>(x[h + k]);
      squares += v * v;
    }
  const float rstd = 1 / sqrtf(block_sum(squares) / static_cast<float>(columns) + args.eps);
  if (threadIdx.x == 0) args.rstd.data[blockIdx.x] = rstd;
  for (int64_t h = threadIdx.x; h < columns; h += kThreads) {
    float normal = static_cast<float>(x[h]) * rstd;
    if (args.casting == Casting::kLlama) normal = static_cast<float>(Elem(normal));
    const float gain = args.w.data ? args.offset + static_cast<float>(args.w.data[h]) : 1.0f;
    y[h] = Elem(normal * gain);
  }
}

template <class P>
Status forward(const Forward<P>& args, Stream stream) {
  const auto rows = static_cast<unsigned>(args.x.shape[0]);
  if (rows > 0) forward_kernel<P><<<rows, kThreads, 0, stream>>>(args);
  return {};
}

}  // namespace tigon::rms_norm
